"""Secrets out by format, and what only looks like one left alone.

Every secret here is made up and put together from parts, so that no scanner takes this file for a leak.
"""

from __future__ import annotations

import base64
import json
import re
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gitledger
from gitledger import openpgp
from gitledger.model import Json
from gitledger.redact import DEEPEST, bounded, redact, redact_json, texts
from gitledger.secrets_rules import RULES, RULESET
from tests.data import secrets_development
from tests.sealed import LONG

ALNUM = string.ascii_letters + string.digits
UPPER = string.ascii_uppercase + string.digits
HEX = "0123456789abcdef"


def made(length: int, alphabet: str = ALNUM) -> str:
    """Text as a machine would make it: no words, always the same."""
    return "".join(alphabet[(i * i * 7 + i * 13 + 5) % len(alphabet)] for i in range(length))


def pem(kind: str = "RSA ", lines: int = 5, newline: str = "\n") -> str:
    head, tail = "-----" + f"BEGIN {kind}PRIVATE KEY-----", "-----" + f"END {kind}PRIVATE KEY-----"
    return newline.join([head, *(["MII" + made(61)] * lines), made(22) + "==", tail])


JWT = ".".join(["ey" + "J" + made(33), "ey" + "J" + made(70), made(43)])

# the secret alone; every one is also tried inside prose, JSON, a shell line and raw JSON text
TOKENS: dict[str, list[str]] = {
    "aws-key-id": ["AK" + "IA" + made(16, UPPER), "AS" + "IA" + made(16, UPPER)],
    "github": [f"gh{kind}_" + made(36) for kind in "pousr"] + ["github" + "_pat_" + made(22) + "_" + made(59)],
    "gitlab": [
        "gl" + "pat-" + made(20),
        "gl" + "dt-" + made(20),
        "gl" + "pat-" + made(27) + ".01." + made(9),
        "GR" + "1348941" + made(20),
    ],
    "slack": [
        "xo" + "xb-" + "123456789012-1234567890123-" + made(24),
        "xo" + "xp-" + "1234567890-1234567890-" + made(32, HEX),
        "xa" + "pp-1-A" + made(10, UPPER) + "-1234567890123-" + made(64, HEX),
        "xo" + "xe.xo" + "xp-1-" + made(80),
        "xo" + "xd-" + made(60),
    ],
    "stripe": [
        "sk" + "_live_" + made(24),
        "rk" + "_live_" + made(24),
        "sk" + "_test_" + made(99),
        "wh" + "sec_" + made(32),
    ],
    "openai": ["sk" + "-" + made(48), "sk" + "-proj-" + made(74) + "_" + made(40), "sk" + "-svcacct-" + made(60)],
    "anthropic": ["sk" + "-ant-api03-" + made(80) + "-" + made(12) + "AA", "sk" + "-ant-oat01-" + made(80)],
    "google": ["AI" + "za" + made(35), "ya" + "29." + made(60), "GOC" + "SPX-" + made(28), "1/" + "/0" + made(60)],
    "npm": ["np" + "m_" + made(36)],
    "pypi": ["py" + "pi-AgEIcHlwaS5vcmc" + made(100)],
    "huggingface": ["h" + "f_" + made(34, string.ascii_letters)],
    "sendgrid": ["S" + "G." + made(22) + "." + made(43)],
    "twilio": ["S" + "K" + made(32, HEX)],
    "telegram": ["123456789" + ":A" + "A" + made(33), "bot7123456789" + ":A" + "A" + made(33)],
    "discord": ["M" + made(23) + "." + made(6) + "." + made(38)],
    "supabase": ["sb" + "_secret_" + made(31), "sb" + "p_" + made(40, HEX)],
    "digitalocean": ["do" + "p_v1_" + made(64, HEX)],
    "vault": ["hv" + "s." + made(24), "hv" + "b." + made(90)],
    "docker": ["dck" + "r_pat_" + made(27)],
    "shopify": ["shp" + "at_" + made(32, HEX)],
    "databricks": ["da" + "pi" + made(32, HEX)],
    "grafana": ["gl" + "sa_" + made(32) + "_" + made(8, HEX)],
    "linear": ["lin" + "_api_" + made(40)],
    "postman": ["PM" + "AK-" + made(24, HEX) + "-" + made(34, HEX)],
    "groq": ["gs" + "k_" + made(52)],
    "replicate": ["r" + "8_" + made(37)],
    "rubygems": ["ruby" + "gems_" + made(48, HEX)],
    "age": ["AGE-" + "SECRET-KEY-1" + made(58, UPPER)],
    "jwt": [JWT, JWT.rsplit(".", 1)[0]],
    "private-key": [
        pem(),
        pem("OPENSSH "),
        pem("EC "),
        pem(""),
        pem("ENCRYPTED "),
        pem(newline="\\n"),
        pem().replace("KEY-----", "KEY BLOCK-----").replace("RSA ", "PGP "),
    ],
}
ALL_TOKENS = [(rule, token) for rule, tokens in TOKENS.items() for token in tokens]

# (text, what must be gone, the whole answer)
IN_CONTEXT = [
    ("aws_secret_access_key = {}", made(39) + "/", "aws-secret"),
    ('"SecretAccessKey": "{}"', made(40), "aws-secret"),
    ("AccountName=acc;AccountKey={};EndpointSuffix=core", made(86) + "==", "azure"),
    ("https://acc.blob.core.windows.net/c?sp=r&sig={}&se=1", made(43) + "%3D", "azure"),
    (
        "https://hooks.slack" + ".com/services/{}",
        "T0" + made(9, UPPER) + "/B0" + made(9, UPPER) + "/" + made(24),
        "slack-webhook",
    ),
    ("https://discord.com/api/webhooks/123456789012345678/{}", made(68), "discord-webhook"),
    ("postgres://app:{}@db.example.com:5432/app", "s3cr" + "etPass", "uri-password"),
    ("mongodb+srv://app:{}@cluster0.mongodb.net", "p%40ss" + "w0rd", "uri-password"),
    ("redis://:{}@localhost:6379/0", "hunt" + "er2", "uri-password"),
    ("https://x-access-token:{}@github.com/a/b.git", made(40, HEX), "uri-password"),
    ("amqp://u:{}@h", "a/b#" + "c1", "uri-password"),
    ("Authorization: Bearer {}", made(24), "authorization"),
    ("curl -H 'authorization: Basic {}' https://h", "dXNlcjpw" + "YXNzd29yZA==", "authorization"),
    ('{{"Authorization": "token {}"}}', made(40, HEX), "authorization"),
    ("used Bearer {} for it", made(32), "authorization"),
    ("curl -s -u admin:{} https://h", "hunt" + "er2", "curl-user"),
    ("machine h login me password {}", "hunt" + "er2", "netrc"),
    ("password={}", "hunt" + "er2", "keyword"),
    ("password: {}", "Tr0ub4dor" + "&3", "keyword"),
    ("DB_PASSWORD={}", "letme" + "inplease", "keyword"),
    ("export API_TOKEN={}", "letme" + "inplease", "keyword"),
    ('"password": "{}"', "correct horse " + "battery staple", "keyword"),
    ('{{\\"db_password\\": \\"{}\\"}}', "hunt" + "er2!", "keyword"),
    ("api_key = '{}'", made(32), "keyword"),
    ('apiKey: "{}",', made(20), "keyword"),
    ("client_secret={}&grant_type=x", made(40), "keyword"),
    ("GET /login?user=a&password={}&next=/", "letme" + "in", "keyword"),
    ("Server=h;User Id=sa;Password={};Encrypt=true", "Str0ng!" + "Pass", "keyword"),
    ("X-Api-Key: {}", made(32), "keyword"),
    ("TOKEN: str = '{}'", made(32), "keyword"),
    ("mysql --user=root --password {} db", "hunt" + "er2", "keyword"),
    ("<password>{}</password>", "hunt" + "er2", "keyword"),
    ("app['secret_key'] = '{}'", made(50), "keyword"),
    ("password='{}", "hunt" + "er2", "keyword"),
    ("//registry.npmjs.org/:_authToken={}", made(8, HEX) + "-" + made(27, HEX), "keyword"),
    ('if token == "{}":', made(24), "keyword"),
]

LOOK_ALIKES = [
    made(40, HEX),
    made(64, HEX),
    "commit " + made(40, HEX),
    "sha1:" + made(40, HEX),
    "index 3f2a1b9..77aa0c1 100644",
    "0190f5e2-7c3b-7d4a-9c1e-2f6b8a9d0e1f",
    "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + made(43) + " me@host",
    "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQ" + made(300),
    "sk-ssh-ed25519@openssh.com AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29tAAAAI" + made(43),
    "256 SHA256:" + made(43) + " me@host (ED25519)",
    "-----BEGIN SSH SIGNATURE-----\nU1NIU0lHAAAAAQ" + made(56) + "\n-----END SSH SIGNATURE-----",
    "-----BEGIN PUBLIC KEY-----\n" + made(64) + "\n-----END PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----\n" + made(64) + "\n-----END CERTIFICATE-----",
    'if "-----BEGIN RSA PRIVATE KEY-----" in text: return',
    "getAccessTokenFromRefreshTokenProvider",
    "refreshTokenRotationIntervalInSeconds = 3600",
    "this.passwordResetTokenRepository.findByToken(token)",
    "token = refreshTokenProvider.current",
    "password = getpass()",
    "password = getpass.getpass('Password: ')",
    "password = os.environ['DB_PASSWORD']",
    "api_key=os.environ.get('KEY', None)",
    "apiKey: process.env.OPENAI_API_KEY,",
    "token = jwt2.sign(payload)",
    "token = tokens[0]",
    "login(user=user, password=password)",
    "login(password=new_password1)",
    "def login(user: str, password: str) -> None:",
    "password: Optional[str] = None",
    "let token: Uint8Array = buf",
    "token: <token>",
    "password: xxxxxxxx",
    "password=********",
    "token=${TOKEN}",
    "token: $GITHUB_TOKEN",
    "token: ${{ secrets.NPM_TOKEN }}",
    "password: {{ vault_password }}",
    "api_key: your-api-key",
    "OPENAI_API_KEY=sk-your-key-here-and-more-text",
    "api_key = 'YOUR_API_KEY'",
    "api_key = 'my-api-key-goes-here'",
    "password: changeme",
    "password: null",
    "secret: true",
    "tokens: 12345",
    "max_token: 4096",
    "token: 2026-11-30T14:49:11.123Z",
    "password_file=/run/secrets/db2",
    "private_key = 'keys/server1.pem'",
    "PWD=/home/me/work2",
    "secret: db-creds-v2",
    "--- PASS: TestFoo2 (0.00s)",
    "the password must have 8 characters; a token: it is short",
    '"password": "Your password must have at least 8 characters"',
    "if token == 'IDENTIFIER':",
    "f'token={token}'",
    "SGVsbG8sIHdvcmxkIQ==",
    "eyJhIjoxfQ==",
    "https://example.com:8080/path@2x.png",
    "https://user:<token>@host/x",
    "https://user:${PASS}@host/x",
    "git@github.com:owner/repo.git",
    "npm_config_registry=https://registry.npmjs.org",
    "hf_hub_download(repo_id='x')",
    "task-force-and-risk-assessment-of-the-disk-layout",
    "sk-loading-indicator-with-a-long-css-class-name",
    "ghp_short",
    "gh" + "p_" + "x" * 36,
    "AK" + "IA" + "X" * 16,
    "1790000000:AB",
    "Authorization: Bearer ${TOKEN}",
    "headers['Authorization'] = f'Bearer {token}'",
    "Authorization: Bearer <your token>",
    "bearer authentication is described in the guide to the api",
    "SK" + made(20, HEX),
    "T-0007@k3f9c2 C-000123 k3f9c2",
    "SG.this.that",
    "xoxo-with-love-from-all-of-us",
    "keyboard: qwerty12",
    "self, private_key: ed25519.Ed25519PrivateKey, other: X",
    "monkey = 'banana12345'",
]

WRAPPINGS = [
    "{}",
    "the key is {}, keep it",
    "KEY='{}'",
    '{{"k": "{}"}}',
    "a\\n{}\\nb",
    "x={}\n",
    "({})",
    "<{}>",
    "`{}`.",
]


@pytest.mark.parametrize(("rule", "token"), ALL_TOKENS, ids=[f"{r}-{i}" for i, (r, _) in enumerate(ALL_TOKENS)])
@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_a_token_is_replaced_wherever_it_stands(rule: str, token: str, wrapping: str):
    clean = redact(wrapping.format(token))
    assert clean == wrapping.format(f"[redacted:{rule}]") or (rule == "telegram" and "[redacted:telegram]" in clean)
    assert token[-12:] not in clean


@pytest.mark.parametrize(("text", "secret", "rule"), IN_CONTEXT)
def test_a_secret_is_known_by_what_stands_before_it(text: str, secret: str, rule: str):
    assert redact(text.format(secret)) == text.format(f"[redacted:{rule}]")


@pytest.mark.parametrize("text", LOOK_ALIKES)
def test_a_look_alike_is_left_alone(text: str):
    assert redact(text) == text
    assert redact(f"before {text}\nafter") == f"before {text}\nafter"


def test_the_tables_are_large_enough_to_mean_something():
    assert len({rule for rule, _ in ALL_TOKENS} | {rule for _, _, rule in IN_CONTEXT}) >= 30
    assert len(LOOK_ALIKES) >= 30


def test_every_rule_has_an_example_and_hints_that_let_it_through():
    tried = "\n".join([t for _, t in ALL_TOKENS] + [text.format(s) for text, s, _ in IN_CONTEXT])
    tried += "\n".join(text.replace("{}", secret) for _, text, secret in secrets_development.SECRETS)
    for rule in RULES:
        assert re.search(rule.pattern, tried, re.ASCII), rule
        assert all(hint == hint.lower() for hint in rule.hints), rule
    assert RULESET


@pytest.mark.parametrize("cut", [30, 45, 64, 65, 66, 100, 200, 330])
def test_a_private_key_that_was_cut_at_its_end_is_still_redacted(cut: int):
    clean = redact("here:\n" + pem()[: 31 + cut].rstrip() + "\n\nAnd then we went on.")
    assert clean == "here:\n[redacted:private-key]\n\nAnd then we went on."


def test_a_private_key_that_was_cut_at_its_beginning_is_still_redacted():
    clean = redact("… " + pem()[50:] + "\nAnd then we went on.")
    assert made(20)[4:] not in clean
    assert clean.endswith("[redacted:private-key]\nAnd then we went on.")


def test_two_private_keys_do_not_swallow_what_stands_between_them():
    assert redact(pem() + "\nbetween\n" + pem("EC ")) == "[redacted:private-key]\nbetween\n[redacted:private-key]"
    assert "between words" in redact(pem()[:200] + "\nbetween words\n" + pem("EC "))


def test_a_key_of_an_object_is_redacted_and_judges_its_value():
    token = "gh" + "p_" + made(36)
    assert redact_json({token: 1, "x": [token, {"password": "hunt" + "er2"}]}) == {
        "[redacted:github]": 1,
        "x": ["[redacted:github]", {"password": "[redacted:keyword]"}],
    }
    assert redact_json({"Authorization": "Bearer " + made(12)}) == {"Authorization": "Bearer [redacted:authorization]"}
    assert redact_json({"token": "IDENT", "max_tokens": 12, "secret": None}) == {
        "token": "IDENT",
        "max_tokens": 12,
        "secret": None,
    }


def test_two_secret_keys_of_an_object_both_keep_their_values():
    assert redact_json({"gh" + "p_" + made(36): 1, "gh" + "o_" + made(36): 2}) == {
        "[redacted:github]": 1,
        "[redacted:github]#2": 2,
    }


def test_json_nested_too_deep_is_cut_and_says_so():
    deep: object = "x"
    for _ in range(5000):
        deep = [deep]
    assert f"nested deeper than {DEEPEST} levels" in json.dumps(redact_json(deep))


def test_the_answer_can_always_be_encoded():
    assert redact("a\ud800b") == "a\ufffdb"
    assert redact_json({"\udfff": "\ud800"}) == {"\ufffd": "\ufffd"}


pieces = st.one_of(
    st.sampled_from([t for _, t in ALL_TOKENS]),
    st.sampled_from([text.format(secret) for text, secret, _ in IN_CONTEXT]),
    st.sampled_from(LOOK_ALIKES),
    st.sampled_from(
        ["password=", "token: ", '"secret": "', "://u:", "@", "Bearer ", "Authorization: ", "<password>", "--password "]
        + ["[redacted:", "[redacted:github]", "aB3dE5fG7h", "-----", "\\n", "</", *"'\"\\\n][=: -_.&;>x7("]
        + [f"-----{end} PRIVATE KEY-----" for end in ("BEGIN", "END")]
    ),
    st.text(max_size=6),
)


@given(st.lists(pieces, max_size=12).map("".join))
def test_redacting_twice_changes_nothing(text: str):
    once = redact(text)
    assert redact(once) == once


@given(st.text())
def test_plain_text_without_digits_or_marks_is_never_touched(text: str):
    plain = "".join(c for c in text if c.isalpha() or c in " \n")
    assert redact(plain) == plain


@pytest.mark.parametrize(
    "unit",
    [
        "token=", "token=(", "password='", "://a:", "://a:b", "eyJ", "-eyJ", "eyJaaaaaaaaaa.", "gh" + "p_", "M-", "M.",
        "xo" + "xb-1", "-----" + "BEGIN PRIVATE KEY-----", "-----" + "END PRIVATE KEY-----\nMIIEaaaaaaaaaaaaaaaaaaa\n",
        "curl -u ",
        "authorization: bearer ", "--password ", "<password>", "password: a", "a1", "aB", "\\", "\\\"", "S" + "G.",
        "Private-Lines: 1\n", "secret=a.b.", "login a password ", "a", "A", "0", "1//0", "\ud800",
    ],
)  # fmt: skip
def test_a_long_run_of_almost_secrets_comes_to_an_end(unit: str):
    """By the square of its size, or worse, it would not: the long form is a megabyte of each."""
    line = unit * ((1_000_000 if LONG else 100_000) // len(unit))
    assert redact(line)


# ── bounded ──────────────────────────────────────────────────────────────────────────────────
def test_a_cut_says_how_much_was_cut():
    assert bounded("a" * 14_345, 2_000) == "a" * 1_975 + "[… 12,370 characters cut]"
    assert bounded("a" * 2_000, 2_000) == "a" * 2_000
    assert bounded("a" * 50, 3) == "[… 50 characters cut]"


@given(st.text(min_size=41), st.integers(30, 80))
def test_a_bounded_text_keeps_the_limit_and_does_not_change_again(text: str, limit: int):
    cut = bounded(text, limit)
    assert len(cut) <= limit
    assert bounded(cut, limit) == cut
    assert cut == text or text.startswith(cut[: cut.rindex("[… ")])


@pytest.mark.parametrize(
    "whole", ["e\u0301", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f44d\U0001f3fd", "❤\ufe0f", "\r\n"]
)
def test_a_cut_does_not_part_what_people_read_as_one(whole: str):
    for before in range(6):
        text = "a" * before + whole * 40
        kept = bounded(text, 60).split("[… ")[0][before:]
        assert kept == whole * (len(kept) // len(whole))


def test_a_cut_does_not_part_a_redaction():
    text = "a" * 20 + "[redacted:github]" + "b" * 60
    assert bounded(text, 50) == "a" * 20 + "[… 77 characters cut]"


def test_no_pattern_is_one_that_python_before_3_11_5_matches_wrongly():
    # A possessive group, `(?:…)++`: on Debian 12 the secrets that such a rule knows would stay in.
    source = Path(str(redact.__code__.co_filename)).read_text(encoding="utf-8")
    possessive = re.compile(r"\)(?:[*+?]|\{\{?[\d,]+\}?\})\+")
    code = [line for line in source.splitlines() if not line.lstrip().startswith("#")]
    assert [line for line in code if possessive.search(line)] == []
    assert possessive.search("(?:ab?c)++")
    assert possessive.search("(?:a){1,9}+")


def test_no_pattern_holds_on_to_a_whole_group() -> None:
    # Python before 3.11.5 reads `(…)++` and `(?>…)` wrong where the group could have matched in another way, and what
    # it then lets through are secrets.
    found = [
        f"{path.name}: {line.strip()[:80]}"
        for path in sorted(Path(gitledger.__file__).parent.rglob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"\)(?:\+|\*|\?|\{[0-9,]+\})\+|\(\?>", line)
    ]
    assert found == []


# ── what is public ───────────────────────────────────────────────────────────────────────────
def test_a_public_key_stays_whole_whatever_its_base64_begins_and_nothing_else_passes_for_one() -> None:
    token = "EAA" + made(93)  # what one rule takes for a token, and many keys hold
    body = b"\4\0\x3f" + base64.b64decode(token)
    line = openpgp.line(b"\x99" + len(body).to_bytes(2, "big") + body)
    assert token in line
    assert "[redacted:facebook]" in redact(line), "anywhere else the rule applies"
    change: Json = {"set": {"public_key": line}, "items": {"keys": {"k1": {"public_key": line}}}}
    assert redact_json(change) == change
    assert redact_json(change, 16_000) == change
    assert not [text for text in texts(change) if token in text]
    assert [text for text in texts({"key": line}) if token in text]
    for none in (f"openpgp {token}", f"x509 {token}", line[:-4], f"{line} {token}", token, f"ssh-ed25519 {token}"):
        assert token not in str(redact_json({"public_key": none})), none
        assert [text for text in texts({"public_key": none}) if none in text], none
    assert token not in str(redact_json({"other": line}))
