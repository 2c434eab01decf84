from __future__ import annotations

from context_gatekeeper.evals.tables import figure_tables


def test_plain_figures_groups_and_examples_each_have_their_form() -> None:
    figures = {
        "turns": 12,
        "f1": 0.5,
        "intervals": {"f1": [0.25, 0.75], "recall": None},
        "orders": {"burst": {"empty": 0.0, "by_kind": {"recap": {"queries": 3}}}, "robin": {"empty": 0.125}},
        "errors": [{"query": "为什么"}],
        "peers": {},
    }
    assert list(figure_tables(figures)) == [
        "| figure | value |",
        "|--------|-------|",
        "| turns  | 12    |",
        "| f1     | 0.500 |",
        "",
        "| intervals | value          |",
        "|-----------|----------------|",
        "| f1        | 0.250 to 0.750 |",
        "| recall    | -              |",
        "",
        "| orders                | burst | robin |",
        "|-----------------------|-------|-------|",
        "| empty                 | 0.000 | 0.125 |",
        "| by_kind.recap.queries | 3     | -     |",
        "",
        "errors",
        '- {"query": "为什么"}',
    ]
