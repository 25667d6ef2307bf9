"""The rules by which secrets are known: a table of formats, and the words that make what follows them a secret.

A rule says a format, never only that something looks random. Every quantifier that can fail after a long run is
bounded, and every unbounded one ends a rule, so that time grows with the text and not with its square.
"""

from __future__ import annotations

from gitledger.values import dataclass

RULESET = "2"
"""The version of the rules; a later rule can be told apart from those that a text has been through."""

# A letter or digit before a token makes it part of a longer word; `\n` written out, as in raw JSON, does not.
START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"
END = r"(?![A-Za-z0-9])"
WORD = r"[A-Za-z0-9_-]"
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


@dataclass(frozen=True, slots=True)
class Rule:
    """One format. `hints` are lower-case texts of which one must occur before `pattern` is tried at all.

    The pattern's group `secret` is what is replaced, else all of it. A `token` stands by itself, so it is also looked
    for where a line end parts it. A `mixed` one must hold upper case, lower case and digits, as a machine mixes them.
    """

    name: str
    hints: tuple[str, ...]
    pattern: str
    token: bool = False
    mixed: bool = False


def _token(name: str, hints: str, pattern: str, *, mixed: bool = False) -> Rule:
    """A rule for a token that stands by itself."""
    return Rule(name, tuple(hints.split()), START + pattern, token=True, mixed=mixed)


RULES: tuple[Rule, ...] = (
    _token("aws-key-id", "akia asia abia acca a3t", r"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}" + END),
    Rule(
        "aws-secret",
        ("secret",),
        r"(?i:secret_?access_?key|aws_?secret(?:_?key)?)\\{0,2}[\"']?\s{0,8}(?::=|=>|=|:)\s{0,8}\\{0,2}[\"']?"
        r"(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
    ),
    _token("github", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{30,}"),
    _token("github", "github_pat_", r"github_pat_[A-Za-z0-9_]{40,}"),
    _token("gitlab", "gl", rf"gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat|ffct|rtr)-{WORD}{{20,}}(?:\.\w{{2,}})*"),
    _token("gitlab", "gr1348941", rf"GR1348941{WORD}{{20,}}"),
    _token("slack", "xox", r"xox[a-z](?:\.xox[a-z])?-\d[A-Za-z0-9-]{9,}"),
    _token("slack", "xoxd", r"xoxd-[A-Za-z0-9%+/=]{40,}"),
    _token("slack", "xapp-", r"xapp-\d-[A-Za-z0-9-]{20,}"),
    Rule(
        "slack-webhook",
        ("hooks.slack",),
        r"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9+/_-]{20,})",
    ),
    Rule(
        "teams-webhook",
        ("webhookb2/",),
        rf"/webhookb2/(?P<secret>{_UUID}@{_UUID}/IncomingWebhook/[A-Za-z0-9]{{20,64}}/{_UUID})",
    ),
    _token("stripe", "sk_ rk_", r"[sr]k_(?:live|test|prod)_[A-Za-z0-9]{16,}"),
    _token("stripe", "whsec_", r"whsec_[A-Za-z0-9+/=]{24,}"),
    _token("anthropic", "sk-ant-", rf"sk-ant-{WORD}{{20,}}"),
    _token("openai", "sk-", rf"sk-(?:(?:proj|svcacct|admin|None|or-v1|lf)-{WORD}{{20,}}|[A-Za-z0-9]{{32,}})"),
    _token("google", "aiza", rf"AIza{WORD}{{35,}}"),
    _token("google", "ya29.", rf"ya29\.{WORD}{{20,}}"),
    _token("google", "gocspx-", rf"GOCSPX-{WORD}{{20,}}"),
    _token("google", "1//0", rf"1//0{WORD}{{30,}}"),
    _token("npm", "npm_", r"npm_[A-Za-z0-9]{36,}"),
    _token("pypi", "pypi-ag", rf"pypi-Ag{WORD}{{40,}}"),
    _token("huggingface", "hf_ api_org_", r"(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    _token("sendgrid", "sg.", rf"SG\.{WORD}{{16,32}}\.{WORD}{{16,}}"),
    _token("twilio", "sk", r"SK[0-9a-f]{32}" + END),
    Rule("telegram", (":aa",), rf"(?:{START}|(?<=bot))\d{{8,10}}:AA{WORD}{{33,}}", token=True),
    _token("discord", ".", rf"[MNO]{WORD}{{23,27}}\.{WORD}{{6}}\.{WORD}{{27,}}"),
    Rule("discord-webhook", ("/webhooks/",), rf"/api(?:/v\d{{1,2}})?/webhooks/\d{{15,20}}/(?P<secret>{WORD}{{60,}})"),
    Rule(
        "azure", ("accountkey", "sharedaccesskey"), r"(?i:AccountKey|SharedAccessKey)=(?P<secret>[A-Za-z0-9+/=]{40,})"
    ),
    Rule("azure", ("sig=",), r"[?&]sig=(?P<secret>[A-Za-z0-9%+/=]{40,})"),
    _token("azure", "q~", r"[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}" + END),
    _token("supabase", "sb_secret_ sbp_", rf"(?:sb_secret_{WORD}{{20,}}|sbp_[a-f0-9]{{40}}{END})"),
    _token("digitalocean", "_v1_", r"do[opr]_v1_[a-f0-9]{64}" + END),
    _token("vault", "hv", rf"hv[sbr]\.{WORD}{{24,}}"),
    _token("docker", "dckr_", rf"dckr_(?:pat|oat)_{WORD}{{20,}}"),
    _token("shopify", "shp", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}" + END),
    _token("databricks", "dapi", r"dapi[a-f0-9]{32}(?:-\d{1,2})?" + END),
    _token("grafana", "gls glc_", r"(?:glsa|glc)_[A-Za-z0-9+/=_]{32,}"),
    _token("linear", "lin_", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}"),
    _token("postman", "pmak-", r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}" + END),
    _token("groq", "gsk_", r"gsk_[A-Za-z0-9]{40,}"),
    _token("xai", "xai-", r"xai-[A-Za-z0-9]{60,}"),
    _token("nvidia", "nvapi-", rf"nvapi-{WORD}{{40,}}"),
    _token("replicate", "r8_", r"r8_[A-Za-z0-9]{36,}"),
    _token("rubygems", "rubygems_", r"rubygems_[a-f0-9]{48}" + END),
    _token("atlassian", "atatt3", rf"ATATT3{WORD}{{60,}}(?:=[A-F0-9]{{8,}})?"),
    _token("atlassian", "atbb", r"ATBB[A-Za-z0-9]{28,}"),
    _token("sentry", "sntry", rf"sntry[su]_(?:{WORD}|[+/=.]){{40,}}"),
    _token("age", "age-secret-key-", r"AGE-SECRET-KEY-1[A-Z0-9]{50,}" + END),
    _token("perplexity", "pplx-", r"pplx-[A-Za-z0-9]{40,}"),
    _token("mailchimp", "-us", r"[0-9a-f]{32}-us\d{1,2}" + END),
    _token("pulumi", "pul-", r"pul-[0-9a-f]{40}" + END),
    _token("newrelic", "nrak- nraa- nrra-", r"NR(?:AK|AA|RA)-[A-Za-z0-9]{27,}"),
    _token("notion", "ntn_", r"ntn_[A-Za-z0-9]{40,}"),
    _token("fly", "fm2_", r"fm2_[A-Za-z0-9+/=_-]{60,}"),
    _token("planetscale", "pscale_", rf"pscale_(?:tkn|pw|oauth)_(?:{WORD}|\.){{32,}}"),
    _token("facebook", "eaa", r"EAA[A-Za-z0-9]{90,}"),
    _token("heroku", "hrku-", rf"HRKU-AA{WORD}{{50,}}"),
    _token("buildkite", "bk", r"bk(?:ua|aj|ct)_[a-f0-9]{40}" + END),
    _token("contentful", "cfpat-", rf"CFPAT-{WORD}{{40,}}"),
    _token("brevo", "xkeysib- xsmtpsib-", r"x(?:key|smtp)sib-[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    _token("typeform", "tfp_", rf"tfp_(?:{WORD}|\.){{40,}}"),
    _token("vendor-live", "_live_", r"(?!pk_)[a-z]{2,20}_live_[A-Za-z0-9]{14,}", mixed=True),
    _token("vendor-live", "_live_", r"[a-z]{2,20}_live_[0-9a-f]{32,}" + END),
    _token("clojars", "clojars_", r"CLOJARS_[0-9a-f]{60}" + END),
    _token("1password", "ops_eyj", rf"ops_eyJ{WORD}{{100,}}"),
    _token("pinecone", "pcsk_", r"pcsk_[A-Za-z0-9]{5,6}_[A-Za-z0-9]{50,}"),
    _token("artifactory", "akcp", r"AKCp[A-Za-z0-9]{65,}"),
    _token("posthog", "phx_", r"phx_[A-Za-z0-9]{40,}"),
    _token("firecrawl", "fc-", r"fc-[0-9a-f]{32}" + END),
    _token("elevenlabs", "sk_", r"sk_[0-9a-f]{48}" + END),
    _token("e2b", "e2b_", r"e2b_[0-9a-f]{40}" + END),
    _token("prefect", "pnu_ pnb_", r"pn[ub]_[a-z0-9]{36}" + END),
    _token("neon", "napi_", r"napi_[a-z0-9]{60,}"),
    _token("plaid", "access-", rf"access-(?:sandbox|development|production)-{_UUID}" + END),
    _token("launchdarkly", "sdk- api-", rf"(?:sdk|api)-{_UUID}" + END),
    _token("square", "sq0", rf"sq0(?:csp|atp)-{WORD}{{22,}}"),
    # What many young services give out: a short word, an underscore, and what only a machine writes.
    _token(
        "prefixed",
        "_",
        r"(?!(?:pk|pub|public|publishable|cs|req|id|ref|evt|msg|file|img|sha\d*|md5|hash|etag|commit|tree|blob|test)_)"
        r"[a-z][a-z0-9]{1,9}_(?:[a-z0-9]{2,8}_)?[A-Za-z0-9]{32,}" + END,
        mixed=True,
    ),
    _token(
        "jwt",
        "eyj",
        rf"eyJ{WORD}{{10,512}}\.(?:eyJ{WORD}{{8,}}(?:\.{WORD}*)?|\.?{WORD}{{16,}}(?:\.{WORD}+){{2,}})",
    ),
    Rule("json-web-key", ('"kty"',), rf"\"(?:d|k|p|q|dp|dq|qi)\"\s{{0,4}}:\s{{0,4}}\"(?P<secret>{WORD}{{22,}})\""),
    Rule("wireguard", ("presharedkey",), r"(?i:PresharedKey)\s{0,4}=\s{0,4}(?P<secret>[A-Za-z0-9+/]{43}=)"),
    Rule(
        "uri-password",
        ("://",),
        r"://[^\s:@/?#\"'<>`]{0,128}:(?P<secret>(?!\d{1,5}[/?#])(?:(?!://)[^\s\"'<>`]){1,256})@",
    ),
    Rule(
        "authorization",
        ("authorization",),
        r"(?i:authorization)\\{0,2}[\"']?\]?\s{0,4}[:=,]\s{0,4}[fFbB]?\\{0,2}[\"'`]?"
        r"(?i:bearer|basic|token|apikey|key|negotiate|ssws)\s{1,4}(?P<secret>[^\s\"'`,;<>\\]{6,})",
    ),
    Rule("authorization", ("bearer ",), rf"{START}[Bb]earer {{1,4}}(?P<secret>[A-Za-z0-9._~+/-]{{20,}}=*)"),
    Rule(
        "curl-user",
        ("curl",),
        r"\bcurl\b[^\n]{0,200}?\s(?:-u|--user)[ =]?[\"']?[^\s:\"']{1,64}:(?P<secret>[^\s\"']{3,})",
    ),
    Rule(
        "command-password",
        ("mysql", "mariadb"),
        r"\b(?:mysql|mariadb)[a-z-]{0,10}\b[^\n|;&]{0,200}?\s-p[\"']?(?P<secret>[^\s\"'$`<>|;&-][^\s\"'`]{3,})",
    ),
    Rule(
        "command-password",
        ("redis-cli", "sqlcmd"),
        r"\b(?:redis-cli\b[^\n|;&]{0,200}?\s-a|sqlcmd\b[^\n|;&]{0,200}?\s-P)\s{1,4}[\"']?"
        r"(?P<secret>[^\s\"'$`<>|;&-][^\s\"'`]{3,})",
    ),
    Rule("netrc", ("login",), r"\blogin\s{1,8}[^\s\"']{1,64}\s{1,8}password\s{1,8}(?P<secret>[^\s\"'<>]{3,})"),
    Rule("ldap", ("bindpw",), r"\bbindpw\s{1,8}(?P<secret>[^\s\"'<>]{4,})"),
    Rule("wifi", ("psk",), r"\bpsk\s{0,4}=\s{0,4}(?:\"(?P<secret>[^\"\n]{8,63})\"|[0-9a-f]{64}\b)"),
)

# ── keyword = value: judged by the value ─────────────────────────────────────────────────────
KEY = (
    r"(?P<key>(?P<pass>passw(?:or)?d|passphrase|(?<=_)pass|(?<=[;_])pwd)"
    r"|(?:api|app|access|secret|private|encrypt(?:ion)?|auth|account|master|service|consumer|signing)[_-]?key"
    r"|(?:api|app|client|consumer)[_-]?secret|secret|token|credentials?)(?:[_-]?\d{1,2})?"
)
# A value ends where the next parameter begins, at white space, a quote, or an escape that is written out.
_BARE = r"(?:(?![,;&|](?:$|[\s\"'`<>]|[A-Za-z_][\w.-]{0,40}[=:])|\\[nrt\"'])[^\s\"'`<>])+"
_QUOTED = (
    r"(?P<prefix>[rRbBuUfF@$]{0,2})(?P<q>\\{0,3}[\"'`])"
    r"(?P<quoted>(?:(?!(?P=q))(?:\\.|[^\\\n])){1,4096})(?P=q)"
)
ASSIGNMENT = Rule(
    "keyword",
    ("pass", "pwd", "secret", "token", "credential", "key"),
    rf"(?i:{KEY})\\{{0,2}}[\"'`]?\]?"
    # a type may stand between: `token: str = "…"`
    r"(?:[ \t]{0,8}:[ \t]{0,4}[&A-Za-z_][\w.<>|& \[\]]{0,30}?(?=[ \t]{0,4}=[^=]))?"
    rf"[ \t]{{0,8}}(?P<op>:=|=>|={{1,3}}|:)(?:\s{{0,20}}{_QUOTED}|[ \t]{{0,8}}[\"'`]?(?P<bare>{_BARE}))",
)
OPTION = Rule(
    "keyword",
    ("--",),
    rf"(?<![\w-])--[\w-]{{0,30}}?(?i:{KEY})(?P<op>[ \t]{{1,4}})(?:{_QUOTED}|(?P<bare>{_BARE}))",
)
ELEMENT = Rule(
    "keyword",
    ("</",),
    rf"(?i:<[\w:.-]{{0,40}}?{KEY})(?P<op>>)(?P<bare>[^<>\s]{{4,256}}+)(?=</)",
)
PAIR = Rule(
    "keyword",
    ("value", "default"),
    # `"name": "API_TOKEN", "value": "…"`, and Terraform's `variable "db_password" { default = "…" }`
    rf"(?i:\\{{0,2}}[\"']?(?:name|key)\\{{0,2}}[\"']?\s{{0,4}}[:=]\s{{0,4}}|\bvariable\s{{1,4}})\\{{0,2}}[\"']?[\w.-]{{0,60}}?"
    rf"(?i:{KEY})\\{{0,2}}[\"']?\s{{0,4}}[,{{]?\s{{0,20}}(?i:type\s{{0,4}}=\s{{0,4}}\w{{1,20}}\s{{1,20}})?"
    rf"\\{{0,2}}[\"']?(?i:value|default)\\{{0,2}}[\"']?\s{{0,4}}(?P<op>[:=])\s{{0,4}}(?:{_QUOTED}|(?P<bare>{_BARE}))",
)
PROSE = Rule(
    "keyword",
    ("passw", "passphrase", "kennwort"),
    r"(?i:\b(?P<key>(?P<pass>passwor[dt]|passphrase|kennwort))(?P<op>[ ]{1,3}(?:is|ist|was|war|to|auf|=|:)?[ ]{0,3}))"
    r"[\"'`„“]?(?P<bare>[^\s\"'`<>„“”]{8,128})",
)
KEYWORDS: tuple[Rule, ...] = (ELEMENT, OPTION, PAIR, ASSIGNMENT, PROSE)
