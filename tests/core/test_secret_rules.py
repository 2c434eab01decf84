"""Secrets of well-known shapes are found; what looks like them is left alone."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import uuid
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.core.secret_rules import find_secrets
from tests.core.secret_samples import BASE_62, BASE_64, SecretSample, secret_samples
from tests.core.texts import ANY_TEXT, LONG

SAMPLES = secret_samples()
EDGES = {
    "alone": "{}",
    "in Chinese": "密钥是{}，不要外传",
    "escaped line feed": '{"command": "first\\n{}\\nlast"}',
    "escaped sign": "a\\u003d{}\\u0026b",
    "percent encoded": "next%3D{}&x",
    "coloured": "\x1b[1;32m{}\x1b[0m",
    "in a table": "| name | {} |",
}


def shown(text: str) -> list[tuple[str, str]]:
    return [(secret.kind, text[secret.start : secret.end]) for secret in find_secrets(text)]


def test_there_are_forty_shapes_and_more() -> None:
    assert len({sample.name for sample in SAMPLES}) == len(SAMPLES) > 40


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_a_secret_is_found_whole_and_alone(sample: SecretSample) -> None:
    assert shown(sample.text) == [(sample.kind, sample.secret)]


@pytest.mark.parametrize("seed", range(20))
def test_other_secrets_of_the_same_shapes_are_found_too(seed: int) -> None:
    missed = [
        sample.name for sample in secret_samples(seed) if sample.secret not in dict(map(reversed, shown(sample.text)))
    ]
    assert len(missed) <= 1  # a drawn text now and then looks like words


@pytest.mark.parametrize("edge", EDGES)
def test_a_key_with_a_prefix_is_found_wherever_a_word_may_begin(edge: str) -> None:
    keys = [sample for sample in SAMPLES if sample.text == f"use {sample.secret} for this"]
    assert len(keys) > 25
    for key in keys:
        assert shown(EDGES[edge].replace("{}", key.secret)) == [(key.kind, key.secret)]


@pytest.mark.parametrize("before", ["x", "0", "_", "A-"])
def test_a_prefix_inside_a_word_is_none(before: str) -> None:
    for sample in SAMPLES:
        if sample.text == f"use {sample.secret} for this":
            assert shown(before + sample.secret) == []


def test_secrets_come_in_order_and_never_touch() -> None:
    text = "\n".join(sample.text for sample in SAMPLES)
    found = find_secrets(text)
    assert len(found) == len(SAMPLES)
    assert all(first.end <= second.start for first, second in pairwise(found))


def test_a_key_inside_a_longer_value_is_one_secret() -> None:
    key = next(sample.secret for sample in SAMPLES if sample.name == "github ghp")
    assert shown(f"GITHUB_TOKEN={key}") == [("github-token", key)]
    assert shown(f"https://bot:{key}@github.com/x/y") == [("github-token", key)]
    assert shown(f"Authorization: Bearer {key}") == [("github-token", key)]
    assert shown(f"TOKEN={key}.c3D4e5F6g7H8") == [("github-token", f"{key}.c3D4e5F6g7H8")]
    assert shown(f"TOKEN=a1B{key}.c3D4e5F6g7H8") == [("token", f"a1B{key}.c3D4e5F6g7H8")]


def test_a_block_inside_a_block_is_one_secret() -> None:
    block = next(sample.secret for sample in SAMPLES if sample.name == "pem RSA ")
    begin, rest = block.split("\n", 1)
    assert shown(f"{begin}\n{block}") == [("private-key", f"{begin}\n{block}")]
    assert shown(f"{block}\n{block}") == [("private-key", block)] * 2
    assert shown(f"{begin}\n{rest.split('-----END')[0]}{begin}") == [
        ("private-key", f"{begin}\n{rest.split('=')[0]}==")
    ]


@pytest.mark.parametrize(
    "name", ["apiKeyValue", "API_KEY", "api-key", "x.apiKey", "OPENAI_APIKEY", "accountKey", "KEY_SECRET"]
)
def test_names_are_read_by_their_last_words(name: str) -> None:
    assert shown(f'{name}="a1B2c3D4e5F6g7H8i9J0k1"')[0][1] == "a1B2c3D4e5F6g7H8i9J0k1"


@pytest.mark.parametrize(
    "name",
    ["apiKeyName", "token_count", "secretary", "monkey", "accessKeyId", "passwordless", "tokens", "unshared_key"],
)
def test_other_last_words_announce_nothing(name: str) -> None:
    assert shown(f'{name}="a1B2c3D4e5F6g7H8i9J0k1"') == []


def test_a_value_longer_than_what_is_judged_is_found_to_its_end() -> None:
    value = "".join(random.Random(5).choices(BASE_62, k=9000))
    assert shown(f"SERVICE_TOKEN={value}") == [("token", value)]


@pytest.mark.parametrize(
    ("header", "secret"),
    [
        ("Authorization: Bearer abcdef0123456789abcdef", "abcdef0123456789abcdef"),
        ("-H 'authorization: bearer 1234567890abcdef'", "1234567890abcdef"),
        ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ("> Proxy-Authorization: Basic YWRtaW46aHVudGVyMg==", "YWRtaW46aHVudGVyMg=="),
        ('headers["Authorization"] = "Token 0a1b2c3d4e"', "0a1b2c3d4e"),
        ('{\\"Authorization\\": \\"Bearer mF_9.B5f-4.1JqM\\"}', "mF_9.B5f-4.1JqM"),
        ('"authorization": ["Bearer mF_9.B5f-4.1JqM"]', "mF_9.B5f-4.1JqM"),
        ("map[Authorization:[Bearer mF_9.B5f-4.1JqM] Host:[x]]", "mF_9.B5f-4.1JqM"),
    ],
)
def test_what_an_authorization_header_holds_is_found_whatever_it_looks_like(header: str, secret: str) -> None:
    assert shown(header) == [("authorization", secret)]


@pytest.mark.parametrize(
    "value",
    ["${TOKEN}", "$TOKEN", "<token>", "{token}", "{{token}}", "***", "********", "your-token-1", "xxxxxxxx1", "...",
     "ACCESS_TOKEN", "accessToken", "API_KEY", "TOKEN_HERE", "token", "test-token", "example-token-1", "authentication",
     "REDACTED1", "PLACEHOLDER"],
)  # fmt: skip
def test_an_authorization_header_to_be_filled_in_holds_no_secret(value: str) -> None:
    for scheme in ("Bearer", "Basic"):
        assert shown(f'curl -H "Authorization: {scheme} {value}" https://x.org') == []


def test_a_name_does_not_reach_over_a_line_break() -> None:
    assert shown('next_page\ntoken = "a1B2c3D4e5F6g7H8i9J0k1"') == [("token", "a1B2c3D4e5F6g7H8i9J0k1")]


# -- left alone ---------------------------------------------------------------------------------------


SHA_1 = hashlib.sha1(b"commit").hexdigest()
HARMLESS = {
    "commit": f"commit {SHA_1}\nAuthor: A",
    "short commit": f"HEAD is now at {SHA_1[:9]} Fix it",
    "pinned action": f"uses: actions/checkout@{SHA_1}",
    "uuid": f"id: {uuid.UUID(int=77**20)}",
    "uuid token": f'"client_token": "{uuid.UUID(int=77**20)}"',
    "integrity": f"integrity: sha512-{base64.b64encode(hashlib.sha512(b'x').digest()).decode()}",
    "lock hash": f"--hash=sha256:{hashlib.sha256(b'x').hexdigest()}",
    "etag": f'ETag: "{hashlib.md5(b"x").hexdigest()}"',
    "fingerprint": "SHA256:" + base64.b64encode(hashlib.sha256(b"k").digest()).decode(),
    "public key": "ssh-rsa " + base64.b64encode(random.Random(3).randbytes(280)).decode() + " ann@box",
    "certificate": "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0\n-----END CERTIFICATE-----",
    "begin line in code": 'if "-----BEGIN PRIVATE KEY-----" in text: return "-----END PRIVATE KEY-----"',
    "key from parts": '"-----BEGIN RSA PRIVATE KEY-----\\n" + body + "\\n-----END RSA PRIVATE KEY-----"',
    "template": "API_KEY=${API_KEY}\nTOKEN={{ secrets.TOKEN }}\nPASSWORD=<your password>\nSECRET=$(cat secret)",
    "environment": 'token = os.environ["GITHUB_TOKEN"]\napi_key: process.env.OPENAI_API_KEY,',
    "call": "password = generate_password2(length=24)\nsecret=base64.b64decode(x)",
    "annotation": "def f(private_key: ed25519.Ed25519PrivateKey, api_key: ApiGatewayApiKey2) -> None:",
    "names": "TASK_TOKEN = 'waitForTaskToken2'\nsecret: my-database-secret-prod-2024\nmax_tokens=128000",
    "plain password": "passwd=correct horse\npassword=''\npassword: required",
    "owner's name": "password: process.env.DB_PASSWORD2, secret: this.config.secretValue2b",
    "masked": "token: ************************\nAPI_KEY=sk-...xxxx\nsecret=REDACTED",
    "documentation": "AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE\nAPI_KEY=your-api-key-goes-here-1234",
    "redacted jwt": "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.REDACTED.REDACTED",
    "page token": '"nextPageToken": "' + "".join(random.Random(4).choices(BASE_62, k=60)) + '"',
    "arn": "arn:aws:secretsmanager:us-west-2:123456789012:secret:Database-a1B2c3D4e5F6g7H8",
    "uris": "http://localhost:3000/@vite/client http://h:80?x=a@b https://user@host.org ssh://git@github.com:22/x",
    "sample uris": "postgres://postgres:postgres@db/x redis://user:password@h mongodb://u:${PASS}@h amqp://u:***@h",
    "bearer words": "the bearer of this letter; Authorization: Bearer ${TOKEN}; f'Bearer {access_token}'",
    "css": ".sk-cube-grid-container-large { } .sk-fading-circle-element-delay { }",
    "shouting": "ASIANFOODRESTAURANTS and AKIABCDE",
    "hash under a key": "cache_key=" + hashlib.sha256(b"c").hexdigest() + " primary_key=a1B2c3D4e5F6g7H8i9J0",
    "hash": f"password_hash={SHA_1} token_sha={SHA_1}",
    "half a block": "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_is_no_secret_is_left_alone(name: str) -> None:
    assert shown(HARMLESS[name]) == []


def test_long_base64_holds_no_secret() -> None:
    image = base64.b64encode(random.Random(1).randbytes(300_000)).decode()
    assert shown(f"data:image/png;base64,{image}") == []
    url_safe = base64.urlsafe_b64encode(random.Random(2).randbytes(300_000)).decode()
    assert shown(url_safe) == []


def test_the_standard_library_has_hardly_a_hit() -> None:
    """Pages of 6,000 characters of the code that runs this test; its own sample keys lie in other folders."""
    folder = Path(json.__file__).parent.parent
    pages = hits = 0
    for path in sorted((*folder.glob("*.py"), *folder.glob("[a-z]*/*.py"))):
        if "site-packages" in path.parts or "test" in path.parts[-2]:
            continue
        text = path.read_text("utf-8", "replace")
        for start in range(0, len(text), 6000):
            pages += 1
            hits += bool(find_secrets(text[start : start + 6000]))
    assert pages > 1500
    assert hits <= pages / 1000


# -- time ---------------------------------------------------------------------------------------------


STORMS = {
    "prefixes": "sk-",
    "prefixes apart": "sk- ghp_ eyJ. SG.. ",
    "names": "token",
    "assignments": "token=",
    "quoted assignments": "token=\"password='",
    "assigned words": "--token token ",
    "hyphens": "api-key-",
    "jwt pieces": "eyJabcdefgh.",
    "uri starts": "://a:b",
    "uri users": "://" + "u" * 60,
    "bearers": "bearer ",
    "authorizations": 'authorization: "',
    "pem begins": "-----BEGIN PRIVATE KEY-----\n",
    "pem ends": "-----BEGIN PRIVATE KEY-----\n-----END X",
    "pem lines": "-----BEGIN PRIVATE KEY-----" + "A" * 64 + "\\n",
    "escapes": "\\n\\n\\nsk-",
    "telegram": "123456789:AA",
    "signatures": "sig=" + "%2B" * 30,
    "aws": "AKIAB",
    "dotted capitals": "\u0130token=",
    "passwords": "password=",
    "Chinese passwords": "\u5bc6\u7801\uff1a",
    "open quotes": 'PASSWORD="a b ',
}


@pytest.mark.parametrize("name", STORMS)
def test_a_hundred_thousand_characters_of_one_kind_are_read(name: str) -> None:
    """What would take a quadratic rule many minutes."""
    storm = STORMS[name]
    assert len(find_secrets(storm * (LONG // len(storm)))) <= 3000


@given(ANY_TEXT)
def test_any_text_is_read_and_places_lie_inside_it(text: str) -> None:
    for secret in find_secrets(text):
        assert 0 <= secret.start < secret.end <= len(text)


@given(st.text(BASE_64, max_size=400))
def test_drawn_base64_is_no_secret(text: str) -> None:
    assert find_secrets(text) == []
