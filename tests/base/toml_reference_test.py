"""Recipes are read as Python's tomllib reads them: documents that use every rule, and random changes of them.

usage: toml_reference_test.py TOML_DUMP [CHANGES]
"""

import datetime
import random
import subprocess
import sys

try:
    import tomllib
except ImportError:
    print("skipped: Python 3.11 has tomllib")
    sys.exit(77)

VALID = [
    "",
    "# nothing\n\n\t# else\n",
    "\ufeffa = 1\n",
    "a = 1\r\nb = 2\r\n",
    "bare_key-1 = 1\n1234 = 2\n\"quoted key\" = 3\n'lit.eral' = 4\n\"\" = 5\n",
    "a.b.c = 1\na.b.d = 2\na . 'e f' . \"g\" = 3\n",
    "[a]\nx = 1\n[a.b]\ny = 2\n[ c . d ]\nz = 3\n",
    "[a.b.c]\nx = 1\n[a]\ny = 2\n[a.b]\nz = 3\n",
    "[a]\nb.c = 1\nb.d.e = 2\n[a.b.f]\ng = 3\n",
    "[[a]]\nx = 1\n[[a]]\n[[a.b]]\ny = 1\n[[a.b]]\ny = 2\n[a.c]\nz = 1\n",
    "a = [1, 2.5, 'x', [true, []], {b = 1}, # comment\n  3,\n]\n",
    "a = { b = 1, c.d = 'x', e = { f = [1,\n2] } }\nb = {}\n",
    "a = [{x = 1}, {x = 2}]\nb = [{x = 1}, 2]\n",
    "a = 0\nb = +17\nc = -9_223_372_036_854_775_808\nd = 9223372036854775807\ne = 0xdead_BEEF\nf = 0o755\ng = 0b1101\n",
    "a = 1.0\nb = -0.01\nc = 5e+22\nd = 1e06\ne = -2E-2\nf = 6.626e-34\ng = 224_617.445_991\nh = -0.0\ni = 100e-5\nj = 5e-324\n",
    "a = inf\nb = +inf\nc = -inf\n",
    "a = true\nb = false\n",
    'a = "tab\\t nl\\n quote\\" back\\\\ \\b\\f\\r \\u00e9 \\U0001F600 é 😀"\n',
    "a = 'C:\\no\\escapes \"here\"'\n",
    'a = """\nfirst\n  second \\\n\n   joined\\\\ "two"" quotes"""\nb = """x"""""\nc = """\\"\\"\\""""\n',
    "a = '''\nline 'one' ''two\nline'''\nb = ''''x'''''\n",
    "a = \"'\"\nb = '\"'\nc = \"\"\nd = ''\n",
    "name = 'n' # with a comment, é\nseed=3\n[model]\npatch = [10,10]\n[data.partition]\nkind='iid'\n",
]
INVALID = [
    "a", "a =", "= 1", "a = 1 b = 2", "a = 1\na = 2", "a.b = 1\na = 2", "a = 1\na.b = 2", "a = {b = 1}\na.c = 2",
    "a = {b = 1}\n[a.c]\nd = 1", "[a]\n[a]", "[a]\nb = 1\n[a.b]", "[a.b]\n[a]\nb.c = 1", "[a]\nb.c = 1\n[a.b]",
    "a = []\n[[a]]", "a = [1]\n[a.b]", "[[a]]\n[a]", "[a]\n[[a]]", "[a.b.c]\nz = 9\n[a]\nb.c.t = 1", "[[a.b]]\n[a]\nb.y = 2",
    "a = {b = 1,}", "a = {b = 1\n}", "a = {b = 1, b = 2}", "a = {b = 1 c = 2}", "a = [1 2]", "a = [", "a = [1,,2]", "a = [,]",
    "a = 01", "a = 1__0", "a = _1", "a = 1_", "a = 1.", "a = .5", "a = 1._5", "a = 1_.5", "a = 1e", "a = 1e_5", "a = 1e++5",
    "a = 00.5", "a = 0x", "a = 0x_1", "a = -0x1", "a = 0xg", "a = 0o8", "a = 0b2", "a = 0X1", "a = 9223372036854775808",
    "a = +-1", "a = --1", "a = 1e5.5", "a = Inf", "a = tru", "a = truee", "a = abc", "a = 1979-13", "a = 1-2",
    'a = "x', 'a = "x\ny"', "a = 'x", "a = 'x\ny'", 'a = "\\x41"', 'a = "\\u12"', 'a = "\\ud800"', 'a = "\\U00110000"',
    'a = """x', "a = '''x", 'a = """x""""""', "a = '''''''''", 'a = "\x01"', "a = 'x\x7f'", "# \x00", "a = 1 \x0b", "a = 1\rb = 2",
    '"""a""" = 1', "a b = 1", "a. = 1", ".a = 1", "a..b = 1", "[]", "[a.]", "[a", "[a]]", "[[a]", "[a] b = 1", "[ [a]]", "é = 1",
    "\n\n[a]x", "a = {", "a = {b}", "a = ~", "a\n= 1", 'a = "\\', "\\", "a = 1 # \udcff",
]


def dump(program, texts):
    data = b"".join(text + b"\0" for text in texts)
    out = subprocess.run([program], input=data, stdout=subprocess.PIPE, check=True).stdout
    answers = out.split(b"\0")[:-1]
    assert len(answers) == len(texts), (len(answers), len(texts))
    return answers


def reference(text):
    try:
        return tomllib.loads(text.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError):
        return None


def has(value, wanted):
    if isinstance(value, dict):
        return any(has(v, wanted) for v in value.values())
    if isinstance(value, list):
        return any(has(v, wanted) for v in value)
    return wanted(value)


# What bitfed refuses although it is TOML: dates, numbers that 64 bits do not hold.
def is_beyond(value):
    if isinstance(value, (datetime.date, datetime.time)):
        return True
    return isinstance(value, int) and not -(2**63) <= value < 2**63


def check(text, answer):
    expected = reference(text)
    if answer.startswith(b"error"):
        message = answer.decode()  # is text, and one line
        assert "text: line " in message and "\n" not in message and len(message) < 400, (text, message)
        # Doubles beyond their range are infinite or zero in Python.
        far = b"e" in text.lower() and has(expected, lambda v: isinstance(v, float) and v in (0, float("inf"), float("-inf")))
        assert expected is None or has(expected, is_beyond) or far, (text, message, expected)
        return 0
    assert expected is not None, ("accepted", text, answer)
    again = tomllib.loads(answer[3:].decode())
    assert repr(sort(again)) == repr(sort(expected)), (text, answer, expected)
    return 1


def sort(value):
    if isinstance(value, dict):
        return {key: sort(value[key]) for key in sorted(value)}
    return [sort(v) for v in value] if isinstance(value, list) else value


def changed(rng, texts):
    text = bytearray(rng.choice(texts))
    pieces = [b"[", b"]", b"[[", b"]]", b"{", b"}", b"=", b".", b",", b"\n", b"\r\n", b'"', b"'", b'"""', b"'''", b"\\", b"#", b" ",
              b"a", b"b", b"1", b"0", b"_", b"-", b"+", b"e", b"x", b"u", b"\xc3\xa9", b"\xff", b"\x01", b"a.b", b"a = 1\n", b"[a]\n"]
    for _ in range(rng.randint(1, 4)):
        at = rng.randint(0, len(text))
        kind = rng.random()
        if kind < 0.5:
            text[at:at] = rng.choice(pieces)
        elif kind < 0.8:
            del text[at : at + rng.randint(1, 4)]
        else:
            other = rng.choice(texts)
            begin = rng.randint(0, len(other))
            text[at:at] = other[begin : begin + rng.randint(1, 20)]
    return bytes(text).replace(b"\0", b"")


def main():
    program, changes = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20000
    valid = [text.encode() for text in VALID]
    invalid = [text.encode(errors="surrogateescape").replace(b"\0", b"\x02") for text in INVALID]
    for text, answer in zip(valid + invalid, dump(program, valid + invalid)):
        assert check(text, answer) == (text in valid), (text, answer)
    deep = [b"a = " + b"[" * 100000, b"a" + b".a" * 100000 + b" = 1", b"[" + b"a." * 100000 + b"a]", b"a = " + b"{a=" * 100000]
    for text, answer in zip(deep, dump(program, deep)):
        assert answer.startswith(b"error") and b"within one another" in answer, (text[:20], answer)
    rng = random.Random(0)
    texts = [changed(rng, valid + invalid) for _ in range(changes)]
    accepted = sum(check(text, answer) for text, answer in zip(texts, dump(program, texts)))
    print(f"{changes} changed documents, of which {accepted} are TOML")
    assert accepted > changes / 20


main()
