r"""Writes sessions.json.gz beside it: random sessions in a shop of awkward products, played by WebShop's own code.

    python3 -m venv v && v/bin/pip install Flask==2.1.2 'Werkzeug<2.2' beautifulsoup4==4.11.1 numpy tqdm rich thefuzz==0.22.1
    v/bin/python make_sessions.py WEBSHOP [--sessions 110] [--seed 1] [--out sessions.json.gz]

WEBSHOP is a checkout of github.com/princeton-nlp/WebShop, commit 64fa2a5c, which is not in this repository. Its templates are also
those of webshop-minimal, commit ec82552d, which RAGEN v1 pins, and its environment and rewards are the same code, but for the first
observation, which RAGEN does not show. The file was made by Python 3.11 with Jinja2 3.1.6.

What runs is the original: load_products, get_goals, WebAgentTextEnv, SimServer, the templates, get_reward. Three things stand in:
Lucene's hits are those of envs/retrieve, asked by `go test -run TestHitsForScript` (rankings have goldens of their own); spaCy's tags
are title_nouns; gym, torch and cleantext are empty, because pages need nothing of them. The products are made up here, from words and
from what could go wrong in HTML, JSON and Python; values with `||` or tags of replies are left out, because a file with them is refused.

TestSessionsGolden plays the same actions and compares every page, what can be clicked, reward and end. The sessions under `differs` are
those in which Reprise does something else on purpose (docs/environments.md): their last step, and that alone, has another page.
"""
import argparse
import gzip
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import types

HERE = pathlib.Path(__file__).resolve().parent

KINDS = [("lamp", "Home › Lighting › Desk Lamps", "desk lamp"), ("shoes", "Clothing › Men › Shoes", "Running Shoes "),
         ("mug", "Home & Kitchen › Cups", " ceramic MUG"), ("rug", "Rugs", "")]
LOOKS = ["soft", "warm", "quick drying", "non slip", "rubber sole", "dimmable", "heavy duty", "machine washable"]
TITLES = ["{} & {} <b>bold</b>", "{} \"{}\" 5'6\" tall", "  {} {}  ", "{}\n{} of two lines", "{} &amp; {} &lt;3", "{}  {}   wide gaps",
          "{} {} — 100% “best” №1", "{} {} 日本 😀 ½", "{{{{ {} }}}} {} {{% raw %}}", "{} -->{}<!-- x", "İ {} {} ΟΔΟΣ", "{}\u00a0{}\u2028\u200b", "{}, {}"]
DESCRIPTIONS = ["", " ", "\n", " \n\n ", "\t\r\n", "   ", "\u00a0", "It is soft.", " leads and trails ", "one\r\ntwo\n\nthree", "<script>alert(1)</script>",
                "a <br> b & c", "&nbsp;", "</p></div> done", "\x1f", "It's \"warm\"", "long " * 60 + "end", "[SEP]", "Price: $1.0", "…", "\ufeffx", "\x0c"]
BULLETS = [[""], ["\n"], ["  ", "soft"], "one text, no list", "", ["non slip: yes", "Size & fit <guide>"], ["a\nb", " c "], ["\t"], ["1", "2", "3", "4", "5", "6"],
           ["\u00a0"], ["\x1f"], ["Rubber sole", ""]]
PRICES = [None, "", "$5", "$1,249.00", "$3.00 - $28.00", "$0.10", "$999.99", "$5.00 - $6.50 - $7.00", "Price: $7.5", "$12.345", "$0.00001", "$12345678901234567",
          "$20.00", "$ 31 .5 0", "$8.25$9", "$9.99 ($0.40 / oz)", "$1000"]
SIZES = ["small", "Medium", "x-large", "5.5", "10", "36w x 30l", "9\" x 12\"", "2'", "1/2", "one/two/three", " padded ", "a  b"]
COLORS = ["red", "Dark Red", "navy/white", "café", "ÉTÉ", "İnci", "ΟΔΟΣ", "日本", "😀", "tan & grey", "<b>", "&amp;", "back\\slash", "a\nb", "tab\there", "\x7fdel",
          "50% off", "a+b", "#1 [new]", "[new] #1", "ends]", "{\"x\"}", ", ", ":", "null", "None", "'", "\"", "", "size", "Color", "\x1fus\x1f", "\u00a0nb\u00a0"]
NAMED_AS_BUTTONS = ["Buy Now", "back to search", "< Prev", "Next >", "description", "Features", "reviews", "attributes", "Search"]
WORDS = {"lamp", "shoes", "mug", "rug", "bold", "tall", "lines", "best", "oz"}
QUERIES = ["lamp", "shoes", "mug", "rug", "lamp shoes mug rug", "soft lamp", "the of and", "zzz", "RED", "  two  blanks ", "\"red\" shoes", "\"a b\" lamp", "<b>", "[x] mug",
           "café lamp", "İ lamp", "ΟΔΟΣ", "a+b rug", "100%", "lamp / shoes", "'", "{\"size\": \"red\"} mug", "rug " * 40, " ", "mug]",
           "日本", "\"café\" mug", "59 60"]
INVALID = ["", "buy now", "click[nothing]", "click[search]", "click[]", "search[]", "CLICK[buy now]", "Search[lamp]", "click [description]", "I click[description]", "click[a][b]",
           "search[x", "click[buy now", "\nclick[buy now]", "click[\nbuy now]", "click[back\nto search]", "click[B000000000]", "buy[now]", "click[buy  now]"]
VALID = ["click[Buy Now] please", "click[DESCRIPTION]", "click[< PREV]\nclick[buy now]", "click[Features]]", "click[Next >]", "click[BACK to Search]"]


GOAL = ["asin", "instruction_text", "attributes", "price_upper", "goal_options"]  # what is kept of a goal


def catalogue(r, count):
    """The products and what belongs to them, in the forms of WebShop's files."""
    products, attributes, human, nouns = [], {}, {}, {}
    for i in range(count):
        kind, category, query = KINDS[i % len(KINDS)]
        own = r.sample(LOOKS, r.randint(1, 3))
        title = TITLES[i % len(TITLES)].format(own[0].title(), kind) + r.choice(["", ", 16 oz"])
        asin = f"X{i}" if i % 9 in (0, 3) else "B0" + "".join(r.choices("0123456789ABCDEFGHJKLMNPQRSTVWXYZ", k=8))
        axes = r.choice([None, {}, {"Size": None}, {"Size": [], "color": 4}, {"Size": 3}, {"Color": 5, "Size": 2}, {"color": 3, "Color": 2, "size": 2},
                         {"it's a \"Fit\" <x>": 2, "Größe": 3, "ΣΑΣ": 1}, {"size": 2, "color": 3, "style": 3}, {"red": 2, "color": 5}])
        if axes:
            axes = {name: n and [{"value": v, "image": None} for v in r.sample(SIZES if name.lower() == "size" else COLORS, n)] for name, n in axes.items()}
        if i == 3:
            axes = {"Size": [{"value": f"{n}/{n + 1}"} for n in range(60)], "Color": [{"value": v} for v in COLORS]}
        if i in (5, 6):
            axes = {"Style": [{"value": v} for v in NAMED_AS_BUTTONS[i % 2::2] + ["plain"]], "Size": [{"value": "plain"}, {"value": "large"}, {"value": "large"}]}
        pricing = PRICES[i % len(PRICES)]
        products.append({
            "asin": asin, "name": title, "full_description": DESCRIPTIONS[i % len(DESCRIPTIONS)], "small_description": BULLETS[i % len(BULLETS)],
            "pricing": pricing, "category": r.choice(["garden", "fashion & more", ""]), "query": query, "product_category": category,
            "images": ["none"], "customization_options": axes})
        attributes[asin] = {"attributes": own + r.choice([[], ["\"quoted\" <b> & é"], [" padded "]]),
                            "instruction": r.choice([None, f"Find me {own[0]} {kind}", f"i'm looking for \"{own[0]}\" {kind} & <more>\n", f"  {kind} "]),
                            "instruction_attributes": own}
        if i % 11 == 7:
            attributes[asin] = {}  # has DUMMY_ATTR
        values = [o["value"].strip().replace("/", " | ").lower() for v in (axes or {}).values() for o in v or []]
        if i % 3 == 0:
            human[asin] = [{"instruction": f"..i want {own[0]} {kind}; it's \"{v}\".", "instruction_attributes": own, "instruction_options": [v] if v else []}
                           for v in r.sample(values + [""], min(2, len(values) + 1))]
        nouns[asin] = [w for w in re.findall(r"[^\W\d_]+", title.lower()) if w in WORDS]
    return products, attributes, human, nouns


def original(webshop, hits, nouns):
    """Imports the original beside what stands in."""
    def module(name, **members):
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__dict__.update(members)

    class Searcher:
        def __init__(self, _):
            pass

        def search(self, query, k):
            assert k == 50
            return [types.SimpleNamespace(docid=asin) for asin in hits[query]]

        def doc(self, docid):
            return types.SimpleNamespace(raw=lambda: json.dumps({"id": docid}))

    tagger = lambda title: [types.SimpleNamespace(text=t, pos_="NOUN") for t in nouns[title]]
    module("gym", Env=object)
    module("torch")
    module("cleantext")
    module("rank_bm25", BM25Okapi=None)
    module("spacy", load=lambda _: tagger)
    for name in ["pyserini", "pyserini.search"]:
        module(name)
    module("pyserini.search.lucene", LuceneSearcher=Searcher)
    module("web_agent_site.envs", __path__=[os.path.join(webshop, "web_agent_site", "envs")])  # whose __init__ registers with gym
    sys.path.insert(0, webshop)
    from web_agent_site.engine import engine
    from web_agent_site.envs import web_agent_text_env
    return engine, web_agent_text_env


def hits_of(files, queries):
    """Asks Reprise's search."""
    with tempfile.TemporaryDirectory() as folder:
        asked, told = os.path.join(folder, "asked.json"), os.path.join(folder, "told.json")
        pathlib.Path(asked).write_text(json.dumps({**files, "queries": queries}))
        subprocess.run(["go", "test", "-count=1", "-run", "^TestHitsForScript$", ".", "-args", "-asked", asked, "-told", told], cwd=HERE.parent, check=True)
        return json.loads(pathlib.Path(told).read_text())


class Recorder:
    """Plays sessions and writes down what is seen. Pages and lists of clicks are numbered, each is kept once."""

    def __init__(self, text_env):
        self.text_env, self.pages, self.clicks, self.count = text_env, [], [], 0

    def number(self, known, what):
        if what not in known:
            known.append(what)
        return known.index(what)

    def begin(self, server, rich, attributes, goal):
        server.show_attrs = attributes
        self.count += 1
        self.env = self.text_env.WebAgentTextEnv("text_rich" if rich else "text", server=server, session="zero", session_prefix=f"s{self.count}q")
        observation, _ = self.env.reset(session=goal)
        return [self.number(self.pages, observation), self.number(self.clicks, self.available())]

    def available(self):
        found = self.env.get_available_actions()
        assert found["has_search_bar"] == (found["clickables"] == ["search"])
        return found["clickables"]

    def step(self, action):
        observation, reward, done, _ = self.env.step(action)
        return [action, self.number(self.pages, observation), self.number(self.clicks, self.available()), reward, done]


def spoken(title):
    """A title as a search can have it."""
    return re.sub(r"[\[\]\n]", " ", title)


def choose(r, env, goal, product, queries):
    """An action at random; half of them are what a buyer of the goal's product would do."""
    clicks = env.get_available_actions()["clickables"]
    nameable = [c for c in clicks if c.strip() and c != "search"]
    session = env.server.user_sessions[env.session]
    turn = r.random()
    if turn < 0.1:
        return r.choice(INVALID)
    if turn < 0.13:
        return r.choice(VALID)
    if clicks == ["search"] or turn < 0.17:
        return "search[" + (spoken(product["Title"]) if r.random() < 0.4 else r.choice(queries)) + "]"
    if turn < 0.65:
        if goal["asin"].lower() in clicks and session["asin"] is None:
            return f"click[{goal['asin']}]"
        wanted = goal["goal_options"].values() if isinstance(goal["goal_options"], dict) else goal["goal_options"]
        if session["asin"] == goal["asin"]:
            left = [v for v in wanted if v in clicks and v not in session["options"].values()]
            return f"click[{r.choice(left)}]" if left else "click[buy now]"
    weights = [0.3 if c in ("back to search", "buy now") else 1 for c in nameable]
    return f"click[{r.choices(nameable, weights)[0]}]"


def past_the_end(env):
    """The original goes on to pages without products; in Reprise that is one of the differences."""
    session = env.server.user_sessions[env.session]
    page = env.server.get_page_name(env.browser.current_url)
    return page == "search_results" and session["page"] * 10 >= int(re.search(r"Total results: (\d+)", env.browser.page_source)[1])


# What Reprise does otherwise on purpose: a name, and actions of which the last alone leads to another page there.
DIFFERS = [
    ("search_results in a search", ["search[search_results lamp]", "click[ASIN]", "click[< prev]"]),  # leads to page 0
    ("item_page in a search", ["search[item_page lamp]", "click[ASIN]", "click[features]", "click[< prev]"]),  # leads to the results
    ("the reserved word <q>", ["search[lamp]", "search[<q> desk lamp]"]),  # what was found by that query
    ("the reserved word <c>", ["search[<c> garden]"]),  # a category
    ("a page past the end", ["search[the of and]", "click[next >]"]),
    ("a search after the purchase", ["search[lamp]", "click[ASIN]", "click[buy now]", "search[lamp]"]),
    ("capitals in the name of an action", ["search[rug]", "Search[lamp]"]),  # are nothing there
    ("blanks around the name of an action", ["search[rug]", " search [lamp]"]),
    ("blanks in the name of a button", ["search[lamp]", "click[ASIN]", "click[ buy  now ]"]),
    ("a search for nothing", ["search[lamp]", "search[ ]"]),  # finds nothing
    ("a name that ends in a bracket", ["search[59 60]", "click[X3]", "click[ends]]"]),
]


def differences(recorder, server):
    out = []
    for name, actions in DIFFERS:
        goal = server.goals[0]
        start = recorder.begin(server, True, False, 0)
        steps = []
        for action in actions:
            if action == "click[ASIN]":
                action = next(f"click[{c}]" for c in recorder.available() if re.match("(b0|x)[0-9a-z]", c))
            steps.append(recorder.step(action))
        out.append({"differs": name, "rich": True, "goal": {k: goal[k] for k in GOAL}, "start": start, "steps": steps})
    return out


def play(r, recorder, servers, sessions, queries):
    out = []
    for n in range(sessions):
        human, rich, attributes = n % 3 == 2, n % 2 == 1, n % 4 >= 2
        server = servers[human]
        index = r.randrange(len(server.goals))
        goal = server.goals[index]
        start = recorder.begin(server, rich, attributes, index)
        steps, done = [], False
        while len(steps) < 14 and not done:
            action = choose(r, recorder.env, goal, server.product_item_dict[goal["asin"]], queries)
            if past_the_end(recorder.env) and action.lower().startswith("click[next >]"):
                continue
            steps.append(recorder.step(action))
            done = steps[-1][-1]
        if done:
            steps.append(recorder.step("click[buy now]"))
        out.append({"rich": rich, "attributes": attributes, "human": human, "goal": {k: goal[k] for k in GOAL}, "start": start, "steps": steps})
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("webshop")
    parser.add_argument("--sessions", type=int, default=110)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", default=str(HERE / "sessions.json.gz"))
    args = parser.parse_args()
    r = random.Random(args.seed)
    products, attributes, human, nouns = catalogue(r, 56)
    files = {"products": products, "attributes": attributes, "human": human, "title_nouns": nouns}
    titles = {spoken(p["name"]).lower() for p in products}
    hits = hits_of(files, sorted({q.lower() for q in QUERIES + ["search_results lamp", "item_page lamp"]} | titles))
    engine, text_env = original(args.webshop, hits, {p["name"]: nouns[p["asin"]] for p in products})
    with tempfile.TemporaryDirectory() as folder:
        paths = {}
        for name in ["products", "attributes", "human"]:
            paths[name] = os.path.join(folder, name)
            pathlib.Path(paths[name]).write_text(json.dumps(files[name]))
        engine.DEFAULT_ATTR_PATH, engine.HUMAN_ATTR_PATH = paths["attributes"], paths["human"]
        draw = engine.generate_product_prices
        engine.generate_product_prices = lambda of: random.seed(args.seed) or draw(of)  # the same prices in both shops, and the same limits each time
        servers = []
        for people in [False, True]:
            servers.append(text_env.SimServer("http://127.0.0.1:3000", paths["products"], human_goals=people))
    assert servers[0].product_prices == servers[1].product_prices
    recorder = Recorder(text_env)
    out = {"prices": servers[0].product_prices, "sessions": play(r, recorder, servers, args.sessions, QUERIES), "differs": differences(recorder, servers[0]), **files}
    out.update(pages=recorder.pages, clickables=recorder.clicks)
    content = json.dumps(out, ensure_ascii=False, separators=(",", ":"), sort_keys=False)
    with open(args.out, "wb") as f, gzip.GzipFile(fileobj=f, mode="wb", mtime=0, filename="") as z:
        z.write(content.encode())
    steps = sum(len(s["steps"]) for s in out["sessions"])
    print(f"{len(out['sessions'])} sessions, {steps} steps, {len(recorder.pages)} pages, {os.path.getsize(args.out)} bytes")


main()
