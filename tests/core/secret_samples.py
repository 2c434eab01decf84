"""Made-up secrets of well-known shapes. Put together at run time, so that no scanner takes this file for a leak."""

from __future__ import annotations

import random
from typing import NamedTuple

SMALL = "abcdefghijklmnopqrstuvwxyz"
CAPITAL = SMALL.upper()
DIGITS = "0123456789"
HEX = DIGITS + "abcdef"
BASE_32 = CAPITAL + "234567"
BASE_36 = SMALL + DIGITS
BASE_62 = SMALL + CAPITAL + DIGITS
BASE_64 = BASE_62 + "+/"
URL_SAFE = BASE_62 + "-_"


class SecretSample(NamedTuple):
    """A secret inside a text."""

    name: str
    kind: str
    text: str
    secret: str
    """The part of the text that must not be stored."""


def secret_samples(seed: int = 7) -> list[SecretSample]:
    """One sample of each of more than 40 shapes."""
    chance = random.Random(seed)

    def drawn(alphabet: str, length: int) -> str:
        # A letter of each kind in front, as nearly every drawn key has one somewhere.
        first = "".join(group[3] for group in (SMALL, CAPITAL, DIGITS) if group[3] in alphabet)
        return first + "".join(chance.choices(alphabet, k=length - len(first)))

    samples = []

    def add(name: str, kind: str, secret: str, context: str = "use {} for this") -> None:
        samples.append(SecretSample(name, kind, context.replace("{}", secret), secret))

    add("anthropic", "anthropic-key", "sk-" + f"ant-api03-{drawn(URL_SAFE, 90)}AA")
    add("openai project", "api-key", "sk-" + f"proj-{drawn(URL_SAFE, 120)}")
    add("openai", "api-key", "sk-" + drawn(BASE_62, 48))
    add("deepseek", "api-key", "sk-" + drawn(HEX, 32))
    add("sk with hyphens", "openai-key", "sk-" + f"svc-{drawn(URL_SAFE, 40)}")
    add("openrouter", "api-key", "sk-" + f"or-v1-{drawn(HEX, 64)}")
    for letter in "pousr":
        add(f"github gh{letter}", "github-token", f"gh{letter}" + f"_{drawn(BASE_62, 36)}")
    add("github fine-grained", "github-token", "github" + f"_pat_{drawn(BASE_62, 22)}_{drawn(BASE_62, 59)}")
    add("gitlab", "gitlab-token", "glpat" + f"-{drawn(URL_SAFE, 20)}")
    add("slack bot", "slack-token", "xoxb" + f"-{drawn(DIGITS, 12)}-{drawn(DIGITS, 12)}-{drawn(BASE_62, 24)}")
    add("slack user", "slack-token", "xoxp" + f"-{drawn(DIGITS, 12)}-{drawn(HEX, 32)}")
    add("slack app", "slack-token", "xapp" + f"-1-A0{drawn(CAPITAL, 8)}-{drawn(DIGITS, 13)}-{drawn(HEX, 64)}")
    hook = f"hooks.slack.com/services/T{drawn(CAPITAL + DIGITS, 8)}/B{drawn(CAPITAL + DIGITS, 8)}/{drawn(BASE_62, 24)}"
    add("slack webhook", "slack-webhook", hook, "POST https://{} now")
    add("aws id", "aws-key", "AKIA" + drawn(BASE_32, 16))
    add("aws session id", "aws-key", "ASIA" + drawn(BASE_32, 16))
    add("aws secret", "key", drawn(BASE_64, 40), "aws_secret_access_key = {}")
    add("google", "google-key", "AIza" + drawn(URL_SAFE, 35))
    add("google client", "google-key", "GOCSPX" + f"-{drawn(URL_SAFE, 28)}")
    add("google access", "google-token", "ya29" + f".a0{drawn(URL_SAFE, 60)}")
    add("npm", "npm-token", "npm" + f"_{drawn(BASE_62, 36)}", "//npm.example.org/:_authToken={}")
    add("pypi", "pypi-token", "pypi" + f"-AgEIcHlwaS5vcmc{drawn(URL_SAFE, 120)}")
    add("sendgrid", "sendgrid-key", "SG" + f".{drawn(URL_SAFE, 22)}.{drawn(URL_SAFE, 43)}")
    for name in ("sk_live", "rk_live"):
        add(f"stripe {name}", "stripe-key", name + f"_{drawn(BASE_62, 24)}")
    add("stripe webhook", "stripe-key", "whsec" + f"_{drawn(BASE_62, 32)}")
    add("hugging face", "huggingface-token", "hf" + f"_{drawn(BASE_62, 34)}")
    jwt = f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOi{drawn(URL_SAFE, 40)}.{drawn(URL_SAFE, 43)}"
    add("jwt", "jwt", jwt, "id_token: {}")
    add("groq", "groq-key", "gsk" + f"_{drawn(BASE_62, 52)}")
    add("replicate", "replicate-token", "r8" + f"_{drawn(BASE_62, 37)}")
    add("digitalocean", "digitalocean-token", "dop_v1" + f"_{drawn(HEX, 64)}")
    add("shopify", "shopify-token", "shpat" + f"_{drawn(HEX, 32)}")
    add("vault", "vault-token", "hvs" + f".{drawn(URL_SAFE, 90)}")
    add("twilio", "twilio-key", "SK" + drawn(HEX, 32))
    add("telegram", "telegram-token", ":AA" + drawn(URL_SAFE, 33), f"bot {drawn(DIGITS, 10)}{{}}")
    lines = "\n".join(drawn(BASE_64, 64) for _ in range(12))
    pem = f"-----BEGIN {{}}PRIVATE KEY-----\n{lines}\n{drawn(BASE_64, 30)}==\n-----END {{}}PRIVATE KEY-----"
    for name in ("", "RSA ", "EC ", "OPENSSH "):
        add(f"pem {name}", "private-key", pem.replace("{}", name), "cat id_rsa\n{}\n$ ")
    add("pem in json", "private-key", pem.replace("{}", "").replace("\n", "\\n"), '{"private_key": "{}", "x": 1}')
    cut_off = pem[: pem.index("==")].replace("{}", "RSA ")
    add("pem cut off", "private-key", cut_off, "head -12 key\n{}")
    add("uri", "uri-password", drawn(BASE_62 + "!$", 14), "DATABASE_URL=postgres://app:{}@db.internal:5432/app")
    add("redis uri", "uri-password", drawn(BASE_62, 10), "redis://:{}@10.0.0.7:6379/0")
    add("bearer", "authorization", drawn(URL_SAFE, 40), "curl -H 'Authorization: Bearer {}' https://x.org")
    add("basic", "authorization", drawn(BASE_64, 30) + "==", '{"Authorization": "Basic {}"}')
    add("password", "password", drawn(BASE_62, 9) + "!7$", "DB_PASSWORD={}")
    add("quoted password", "password", drawn(BASE_62, 18), 'config.password = "{}"')
    add("client secret", "secret", drawn(URL_SAFE, 34), '{\\"client_secret\\": \\"{}\\"}')
    add("api key", "key", drawn(BASE_62, 40), "export WEATHER_API_KEY={}")
    add("api key header", "key", drawn(BASE_36, 40), "x-api-key: {}")
    add("hex secret", "secret", drawn(HEX, 64), "SESSION_SECRET: {}")
    add("token flag", "token", drawn(BASE_62, 40), "tool login --token {} --quiet")
    add("typed token", "token", drawn(BASE_62, 30), 'deploy_token: str = "{}"')
    return samples
