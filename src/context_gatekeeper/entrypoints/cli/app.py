"""Commands of ``cgk`` and the border where errors become one line and an exit code.

What a command calls is imported when it runs: each needs another part of the package, and the help text none.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import click

from context_gatekeeper import __version__
from context_gatekeeper.entrypoints.cli.agent_commands import AGENT_COMMANDS
from context_gatekeeper.entrypoints.cli.face import Face, face_options, selection_options, with_face
from context_gatekeeper.entrypoints.cli.mcp_command import mcp
from context_gatekeeper.entrypoints.cli.replay_options import REPLAY_OPTIONS
from context_gatekeeper.entrypoints.cli.serve_command import serve
from context_gatekeeper.entrypoints.cli.terminal import (
    OutputClosedError,
    OutputFailedError,
    Painter,
    Tint,
    make_streams_tolerant,
    one_line,
    pipe_table,
    printable,
    say,
)
from context_gatekeeper.entrypoints.cli.wrap_commands import CLIENT_COMMANDS
from context_gatekeeper.errors import GatekeeperError

__all__ = ["cgk", "run"]

_FINE, _WRONG, _INTERRUPTED = 0, 2, 130


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="cgk")
@face_options
@click.pass_context
def cgk(context: click.Context) -> None:
    """The smallest relevant context of a conversation for each query, with the reason for every block."""
    context.ensure_object(Face)
    if context.invoked_subcommand is None:
        say(context.get_help())


def _file_query(command: Callable[..., Any]) -> Callable[..., Any]:
    """Arguments that select and explain have in common."""
    for decorate in (
        face_options,
        selection_options,
        click.option("--conversation", help="Id of the conversation in FILE.  [default: the first]"),
        click.option("--query", required=True, help="The question that context is wanted for."),
        click.argument("file", required=False),
    ):
        command = decorate(command)
    return command


@cgk.command()
@click.option("--prompt", "shows_prompt", is_flag=True, help="Print the prompt as it would be sent.")
@_file_query
@with_face
def select(
    face: Face, /, file: str | None, query: str, conversation: str | None, shows_prompt: bool, **settings: Any
) -> None:
    """Print the blocks of a conversation that a query needs.

    FILE holds JSON Lines with turns, OpenAI messages or a ChatGPT export; without FILE the
    session in --store is asked.
    """
    from context_gatekeeper.entrypoints.cli.decisions import block_lines, outcome_line, verdict_line
    from context_gatekeeper.entrypoints.cli.history import open_history

    with open_history(face, face.config(**settings), file, conversation) as history:
        gatekeeper = history.gatekeeper
        decision = gatekeeper.explain(query)
        prompt = gatekeeper.build_prompt(query) if shows_prompt else None
        if face.as_json:
            result = {
                "conversation": history.name,
                "turns": gatekeeper.turn_count,
                "query": query,
                "profile": decision.profile,
                "move": decision.verdict.move.value,
                "topic": decision.topic,
                "blocks": [dict(block) for block in decision.blocks],
                "coverage": decision.coverage,
                "tokens": decision.tokens_fitted,
                "history_tokens": history.tokens,
                "warnings": list(gatekeeper.warnings),
            }
            face.print_json(result if prompt is None else {**result, "prompt": prompt})
            return
        if prompt is not None:
            say(printable(prompt))
        else:
            say(f"{one_line(history.name)}: {verdict_line(decision, face.painter)}")
            face.print_lines(["", *block_lines(decision, face.painter), ""])
            say(face.paint(outcome_line(decision, gatekeeper.turn_count, history.tokens), Tint.ACCENT))


@cgk.command()
@_file_query
@with_face
def explain(face: Face, /, file: str | None, query: str, conversation: str | None, **settings: Any) -> None:
    """Print the whole decision behind `select`: gate, topic, stages, coverage, tokens."""
    from context_gatekeeper.entrypoints.cli.decisions import block_lines, decision_json, decision_lines
    from context_gatekeeper.entrypoints.cli.history import open_history

    with open_history(face, face.config(**settings), file, conversation) as history:
        gatekeeper = history.gatekeeper
        decision = gatekeeper.explain(query)
        if face.as_json:
            head = {"conversation": history.name, "turns": gatekeeper.turn_count, "history_tokens": history.tokens}
            face.print_json({**head, **decision_json(decision)})
            return
        face.print_lines([f"{one_line(history.name)}: {gatekeeper.turn_count} turns, {history.tokens} tokens", ""])
        face.print_lines([*decision_lines(decision, face.painter), "", *block_lines(decision, face.painter)])


@cgk.command()
@click.option("--provider", help="minimax, openai, anthropic, or the URL of a service.  [default: minimax]")
@click.option("--model", help="Name of the model.  [default: the provider's]")
@face_options
@selection_options
@with_face
def chat(face: Face, /, **settings: Any) -> int:
    """Chat in the terminal; the gatekeeper builds every prompt.

    Keys are read from the environment or .env: MINIMAX_API_KEY, OPENAI_API_KEY, ANTHROPIC_API_KEY,
    and CGK_API_KEY for a URL. With --json every turn is a line of JSON.
    """
    from context_gatekeeper.entrypoints.cli.chat import run_chat

    return run_chat(face, face.config(**settings))


@cgk.command()
@click.option("--pause", "pauses", is_flag=True, help="Wait for Enter before each query.")
@face_options
@with_face
def demo(face: Face, /, pauses: bool) -> None:
    """Show real conversations going in and the smallest relevant context coming out; then an agent's bill."""
    from context_gatekeeper.entrypoints.cli.demo import run_demo

    run_demo(face, pauses=pauses)


def _replay_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for decorate in REPLAY_OPTIONS:
        command = decorate(command)
    return command


@cgk.command()
@_replay_options
@face_options
@with_face
def replay(face: Face, /, files: tuple[str, ...], **options: Any) -> None:
    """Print what real agent sessions would have cost under each policy, and what would have been missed.

    FILES hold sessions of Claude Code, Codex rollouts, OpenAI or Anthropic message lists, plain or
    gzip-compressed.
    """
    from context_gatekeeper.entrypoints.cli.replay import run_replay

    run_replay(face, files, **options)


@cgk.command()
@face_options
@with_face
def config(face: Face, /) -> None:
    """Print every setting and where its value comes from."""
    origins = face.config().origins
    if face.as_json:
        face.print_json(
            {name: {"value": s.value, "origin": s.origin, "source": s.source} for name, s in origins.items()}
        )
        return
    rows = [(name, "-" if s.value is None else s.value, s.origin, s.source or "-") for name, s in origins.items()]
    face.print_lines(pipe_table(("setting", "value", "origin", "source"), rows))


@cgk.command("eval", add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def evaluate(context: click.Context, arguments: tuple[str, ...]) -> None:
    """Measure selection and recall: qa, gate, contamination, interleaved, followups, tokens, agents."""
    from context_gatekeeper.evals.cli import evals

    face = context.ensure_object(Face)
    passed = list(arguments) or ["--help"]
    if face.as_json and arguments and "--json" not in passed:
        passed.append("--json")
    with face.running():
        evals.main(args=passed, prog_name="cgk eval", standalone_mode=False)


for _command in (*AGENT_COMMANDS, *CLIENT_COMMANDS, serve, mcp):
    cgk.add_command(_command)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run ``cgk``; every error is one line on standard error.

    Returns:
        The exit code: 0 fine, 2 wrong use or an error, 130 after Ctrl-C.
    """
    make_streams_tolerant()
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        result = cgk.main(args=given, prog_name="cgk", standalone_mode=False)
    except OutputFailedError as error:
        _give_up_output()
        return _refuse(str(error), given)
    except GatekeeperError as error:
        return _refuse(str(error), given)
    except click.ClickException as error:
        return _refuse(_usage_message(error), given)
    except (click.Abort, KeyboardInterrupt):
        say(to_stderr=True)
        return _INTERRUPTED
    except OutputClosedError:
        _give_up_output()
        return _FINE
    except OSError as error:  # a help text that cannot be printed
        _give_up_output()
        cause = f"it cannot be written to ({error.strerror})"
        return _refuse(str(OutputFailedError("standard output", cause, "free space or send it elsewhere")), given)
    return result if isinstance(result, int) else _FINE


def _give_up_output() -> None:
    """Let the interpreter flush into nothing at its end, so that it does not fail a second time."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _refuse(message: str, given: Sequence[str]) -> int:
    painter = Painter.for_stream(sys.stderr, wanted="--color" in given)
    say(painter.paint(f"error: {one_line(message)}", Tint.ERROR), to_stderr=True)
    return _WRONG


def _usage_message(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "cgk"
    return f"{path}: {error.format_message().rstrip('.')}; see '{path} --help'"
