"""Passwords that people chose are told by their place; code, labels and templates are left alone."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.core.secret_passwords import find_passwords
from tests.core.texts import ANY_TEXT

CHOSEN = [
    "hunter2",
    "s3cr3t",
    "abc12345",
    "p@ssw0rd",
    "Summer2024",
    "wachtw00rd",
    "passw0rd!",
    "qwert_zui1",
    "k9-horse",
]
PLACES = {
    "environment file": "DB_USER=app\nDB_PASSWORD={}\nDB_HOST=x",
    "exported": "export PGPASSWORD={} && psql",
    "exported in quotes": "export MYSQL_PWD='{}'",
    "short name": "SMTP_PASS={}\n",
    "lower case": "user=app\npassword={}\n",
    "ini file": "[db]\npassword = {}\n",
    "yaml": "db:\n  user: app\n  password: {}\n  host: x",
    "yaml in capitals": "environment:\n  POSTGRES_PASSWORD: {}\n",
    "yaml with a comment": "password: {}  # old\n",
    "yaml in quotes": 'password: "{}"',
    "yaml list": "  - PASSWORD={}\n",
    "plain line": "Login with\nPassword: {}",
    "json": '{"user": "app", "password": "{}", "host": "x"}',
    "escaped json": '{"content": "{\\"db_password\\": \\"{}\\"}"}',
    "escaped lines": '{"content": "A=1\\nDB_PASSWORD={}\\nB=2"}',
    "escaped yaml": '{"content": "user: app\\npassword: {}\\n"}',
    "python": 'password = "{}"',
    "argument in quotes": "connect(user=u, password='{}')",
    "member": "config.db.password = '{}';",
    "subscript": 'os.environ["DB_PASSWORD"] = "{}"',
    "arrow": "'password' => '{}',",
    "go": 'password := "{}"',
    "numbered lines": "   12\tDB_PASSWORD={}\n   13\tX=1",
    "found lines": ".env:12:DB_PASSWORD={}\n",
    "connection string": "Server=x;Uid=app;Pwd={};Port=1",
    "connection string in capitals": "SERVER=x;UID=app;PWD={};DATABASE=y",
    "query in capitals": "?USER=a&PASSWORD={}&X=1",
    "command behind": "PGPASSWORD={}; psql -l",
    "query": "POST /login?user=a&password={}&x=1",
    "dsn": "host=x user=app password={} dbname=y",
    "Chinese": "用户名：app，密码：{}，不要外传",
    "Chinese with a narrow colon": "数据库密码: {}\n",
    "Chinese sentence": "密码是 {}。",
    "traditional": "密碼={}",
    "another word": "口令为{}",
}


def found(text: str) -> list[str]:
    """The passwords in a text."""
    return [text[start:end] for start, end in find_passwords(text, text.lower())]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("password", CHOSEN)
def test_a_password_is_found_whole_and_alone(place: str, password: str) -> None:
    assert found(PLACES[place].replace("{}", password)) == [password]


@pytest.mark.parametrize(
    "password", ["supersecret", "mysecretpassword", "correct-horse-battery", "geheimnis", "Ünïcödes"]
)
def test_letters_alone_are_a_password_in_an_environment_file(password: str) -> None:
    assert found(f"DB_PASSWORD={password}\nX=1") == [password]
    assert found(f'export PGPASSWORD="{password}"') == [password]
    assert found(f"  POSTGRES_PASSWORD: {password}\n") == [password]
    assert found(f'{{"password": "{password}"}}') == found(f"password: {password}\n") == []


@pytest.mark.parametrize("password", ["Tr0ub4dor&3", "a1,b2;c3", "ab12|cd34", "x7/y8+z9=="])
def test_marks_belong_to_a_password_in_an_environment_file(password: str) -> None:
    assert found(f"A=1\nDB_PASSWORD={password}\nB=2") == [password]
    assert found(f"DB_PASSWORD='{password}'") == [password]


def test_a_passphrase_of_several_words_is_one_in_quotes_behind_a_tight_sign() -> None:
    assert found("DB_PASSPHRASE='correct horse battery 9'") == ["correct horse battery 9"]
    assert found('PASSWORD = "Wrong user or code 9"') == found('"password": "Must be 8 or more"') == []


def test_digits_alone_are_a_password_up_to_a_dozen() -> None:
    assert found('"password": "482913"') == found("密码：482913") == ["482913"]
    assert found('"password": "1700000000000"') == []


HARMLESS = {
    "call": "password = get_password2()\npassword=generate2(length=24)\npasswd = hash2(x)",
    "annotation": "def login(user: str, password: str, pwd: Secret2) -> None:\n    password: str = None",
    "typescript": "password: string;\npassword?: string;\npassword: Uint8Array\npassword: varchar255\n",
    "argument": "login(user=user1, password=password1)\nf(a, password=pw12345)\n{ user: user1, password: pass1234 }",
    "member of code": "password=self.password2\npassword: process.env.PASSWORD2\npassword = db2.pass2",
    "variable": "PASSWORD=$X\nPASSWORD=${X12345}\nPASSWORD=$(cat /run/x1)\nPASSWORD={{ vault.x1 }}\nPASSWORD=%PASS12%",
    "mask": "PASSWORD=***\nPASSWORD=*******1\npassword: ********\n密码：******\nPASSWORD=xxxxxx1",
    "to be filled in": "PASSWORD=<your password1>\nPASSWORD=your_password1\nPASSWORD=changeme1\n密码：xxxx",
    "of every manual": "POSTGRES_PASSWORD=postgres\nPASSWORD=changeme\nPASSWORD=example\nPASSWORD=12345678",
    "label": '"password": "Password"\npassword: "Forgotten?"\n"password": "auth/wrong-password-1"',
    "type": '"password": "string"\n"password": "varchar(9)"\npassword: required\n"password": "sha256"\nPASSWORD=hidden',
    "file": "PASSWORD_FILE=/run/secrets/db1\nPASSWORD=/run/secrets/db1\npassword: ./secrets/db1.txt\nPASSWORD=vault://db/pass1",
    "other name": "password_length=123456\npasswords: list1234\npassword_hash: a1b2c3d4\nPASSWORDLESS=enabled1",
    "comparison": "if password == 'hunter2x':\npassword != hunter2x\nassert pwd == cwd1234",
    "short": "pwd=x1\npassword: ab1\nPASSWORD=",
    "prose": "The password is hunter2x and so on.\nA password: it must have 8 characters or more, as below.",
    "constant": 'RESET_PASSWORD: "reset",\nWRONG_PASSWORD = "wrong_password",\nPASSWORD = OTHER\nA_PASSWORD=B_PASSWORD',
    "tests": "PASS: test_1\n12_pass: 123 of 456 tests\nall_pass = true",
    "constant of names": "DB_PASSWORD=my-secret-name",
    "folder": "pwd: /srv/me/x1\nlet pwd = process.cwd();",
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_is_no_password_is_left_alone(name: str) -> None:
    assert found(HARMLESS[name]) == []


@given(ANY_TEXT)
def test_any_text_is_read_and_places_lie_inside_it(text: str) -> None:
    for start, end in find_passwords(text, text.replace("\u0130", "I").lower()):
        assert 0 <= start < end <= len(text)


@given(st.sampled_from(CHOSEN), st.text(max_size=30))
def test_a_password_in_json_is_found_whatever_stands_beside_it(password: str, other: str) -> None:
    assert password in found(json.dumps({"user": other.replace("\u0130", ""), "password": password}))
