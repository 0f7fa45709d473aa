"""What the page does between its elements and the server, without a browser: its scripts run in node."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moviola.server.problems import STATUS
from page_scripts import run_script as run


def test_a_point_in_a_name_is_part_of_it(tmp_path: Path) -> None:
    script = """
      const { title } = await page("base/format.js");
      const ids = ["trips/holiday.2023", "holiday.2024", "Meeting 12.05", "a.mkv"];
      console.log(JSON.stringify(ids.map(title)));
    """
    assert run(script, tmp_path) == ["holiday.2023", "holiday.2024", "Meeting 12.05", "a.mkv"]


def test_a_renamed_file_is_titled_as_it_is_called_now(tmp_path: Path) -> None:
    script = """
      const { libraryInfo } = await page("base/store.js");
      const { title } = await page("base/format.js");
      libraryInfo.value = { renamed: { "trips/VID_1": "Sylt" } };
      console.log(JSON.stringify(["trips/VID_1", "trips/VID_2"].map(title)));
    """
    assert run(script, tmp_path) == ["Sylt", "VID_2"]


def test_a_weak_score_is_never_shown_as_a_strong_one(tmp_path: Path) -> None:
    script = """
      const { percent } = await page("base/format.js");
      console.log(JSON.stringify([0.2499, 0.249999999, 0.25, 0.29, 0.57, 0.999, 1, 0].map(percent)));
    """
    assert run(script, tmp_path) == [24, 24, 25, 29, 57, 99, 100, 0]


def test_searches_of_the_same_words_are_kept_beside_each_other(tmp_path: Path) -> None:
    """They differ in a filter, a gap, marks; one that is the same is kept once, without any loss."""
    script = """
      const kept = {};
      const entries = () => Object.entries(kept);
      serve([
        ["PUT /api/kept/opened", () => ({})],
        ["PUT /api/kept", ({ name, value }) => { kept[name] = value; return { value }; }],
        ["GET /api/kept", () => ({ entries: entries().map(([name, value]) => ({ name, value })) })],
        ["GET /api/videos", () => ({ videos: [] })],
      ]);
      const { searchOf } = await page("base/asked.js");
      const { currentSearch, libraryInfo, questionFields } = await page("base/store.js");
      const { saveButton } = await page("search/saved.js");
      libraryInfo.value = { writable: true, bands: { strong: 0.5, possible: 0.2, weak: 0 } };
      questionFields.value = [{ name: "tag", short: "tagged" }, { name: "folder", short: "in" }];
      const dog = [{ text: "a dog" }];
      const then = (gap) => ({ query: { terms: dog, then: [{ terms: [{ text: "a cat" }], gap }] } });
      const marked = { query: { right: [{ video_id: "beach", start: 1, end: 2 }] } };
      const wanted = [
        {}, {}, { filter: { tag: "best" } }, { filter: { folder: "/x/2023/july" } },
        { filter: { folder: "/y/2023/july" } }, then(30), then(300), { min_score: 0.5, refine: false },
        { min_score: "possible" },
        { query: { terms: dog, ...marked.query } }, marked, { videos: ["films/sea"] },
        { query: { terms: [{ picture: "0".repeat(32), weight: 2 }, { video_id: "beach", time: 65 }] } },
      ];
      for (const asked of wanted) {
        currentSearch.value = searchOf({ query: "a dog", ...asked });
        saveButton().heard.click();
        for (let turn = 0; turn < 20; turn += 1) await settled();
      }
      console.log(JSON.stringify([Object.keys(kept), Object.values(kept), wanted]));
    """
    names, values, wanted = run(script, tmp_path)
    assert names == [
        "a dog", "a dog, tagged best", "a dog, in …/2023/july", "a dog, in …/2023/july (2)",
        "a dog, then a cat", "a dog, then a cat (2)", "a dog, strong, coarse",
        "a dog, strong or possible", "a dog, 1 right",
        "1 right", "a dog, only sea", "like picture + like beach 1:05",
    ]  # fmt: skip
    assert values == [{"query": "a dog", **one} for one in wanted[1:]]


def test_sent_videos_wait_for_room_among_the_jobs(tmp_path: Path) -> None:
    script = """
      let room = 2;
      let begun = 0;
      const started = [];
      const failed = [];
      serve([
        ["POST /api/uploads", () => ({ headers: { Location: `/api/uploads/${(begun += 1)}` } })],
        ["GET /api/uploads/", (_, path) => ({ path: `/in/${path.split("/").pop()}` })],
        ["POST /api/jobs", ({ sources }) => {
          if (started.length === room) return { status: 503, error: { code: "busy" } };
          started.push(sources);
          return { job: String(started.length), sources, state: "done", refused: [], added: 1 };
        }],
      ]);
      const { libraryInfo } = await page("base/store.js");
      const ingest = await page("library/ingest.js");
      ingest.ingestParts({ changed: async () => {}, failed: (what) => failed.push(what), went: () => {} });
      libraryInfo.value = { can_ingest: true, libraries: ["films"] };
      // The clock of the page is ours: what waits is called when there is room.
      const waiting = new Map();
      const before = globalThis.setTimeout;
      globalThis.setTimeout = (call) => { waiting.set(waiting.size + 1, call); return waiting.size; };
      globalThis.clearTimeout = (number) => waiting.delete(number);
      await ingest.sendVideos([1, 2, 3, 4, 5].map((number) => ({ name: `${number}.mp4`, size: 0 })));
      room = 3;
      const [call] = [...waiting.values()];
      globalThis.setTimeout = before;
      call();
      for (let turn = 0; turn < 20; turn += 1) await settled();
      console.log(JSON.stringify({ started, failed }));
    """
    assert run(script, tmp_path) == {
        "started": [["/in/1"], ["/in/2"], ["/in/3", "/in/4", "/in/5"]],
        "failed": [],
    }


def test_of_a_file_whose_content_is_known_a_job_says_so(tmp_path: Path) -> None:
    script = """
      const done = { job: "1", sources: ["/in"], state: "done", refused: [], added: 0, copies: 2 };
      serve([["POST /api/jobs", () => done]]);
      const ingest = await page("library/ingest.js");
      const { begun } = ingest.ingestParts({ changed: async () => {}, failed: () => {}, went: () => {} });
      await ingest.bringIn(["/in"]);
      const texts = (part) => typeof part === "string" ? [part] : (part.children ?? []).flatMap(texts);
      console.log(JSON.stringify(texts({ children: begun }).filter((text) => text.includes("added"))));
    """
    assert run(script, tmp_path) == ["0 videos added, 2 files hold videos of the library"]


@pytest.mark.parametrize("crossing", [True, False])
def test_an_older_answer_hides_no_newer_state(tmp_path: Path, crossing: bool) -> None:
    """A folder that came meanwhile went again from the list when the answer from before it arrived."""
    script = """
      const waiting = [];
      const kept = new Map();
      globalThis.fetch = (path) => new Promise((resolve) => waiting.push([path, resolve]));
      const said = (path, paths) => path === "api/duplicates" ? { duplicates: [] }
        : { roots: paths.map((one) => ({ path: one, videos: 1, away: "", watched: false, patterns: [] })) };
      const answer = (requests, paths) => {
        for (const [path, resolve] of requests) resolve({ ok: true, json: async () => said(path, paths) });
      };
      const { showRoots, rootsSection } = await page("library/roots.js");
      const shown = [showRoots(), showRoots()];
      const [older, newer] = [waiting.slice(0, 2), waiting.slice(2)];
      if (CROSSING) { answer(newer, ["/one", "/two"]); await settled(); answer(older, ["/one"]); }
      else { answer(older, ["/one"]); await settled(); answer(newer, ["/one", "/two"]); }
      await Promise.all(shown);
      const texts = (part) => typeof part === "string" ? [part] : (part.children ?? []).flatMap(texts);
      console.log(JSON.stringify(texts(rootsSection()).filter((text) => text.startsWith("/"))));
    """.replace("CROSSING", json.dumps(crossing))
    assert run(script, tmp_path) == ["/one", "/two"]


def test_bars_hold_all_days_however_long_the_time(tmp_path: Path) -> None:
    """From 220 bars on the first ones went without a word, and a day that was chosen was the only bar."""
    script = """
      const { periods, daysOf } = await page("search/days.js");
      const day = (day) => ({ day, videos: 1 });
      const spans = [
        ["2024-02-28", "2024-03-02"], ["2023-01-31", "2024-02-01"], ["1904-01-01", "2024-05-06"],
      ];
      const bars = spans.map((ends) => periods(ends.map(day)));
      console.log(JSON.stringify([
        bars.map((of) => [
          of.length, of[0].label, of.at(-1).label, of.reduce((sum, one) => sum + one.videos, 0),
        ]),
        ["2024", "2024-02", "2024-02-03..", "..2023", "later", ""].map(daysOf),
      ]));
    """
    bars, ends = run(script, tmp_path)
    assert bars == [
        [4, "2024-02-28", "2024-03-02", 2],
        [14, "2023-01", "2024-02", 2],
        [121, "1904", "2024", 2],
    ]
    assert ends == [
        ["2024-01-01", "2024-12-31"], ["2024-02-01", "2024-02-29"], ["2024-02-03", ""],
        ["", "2023-12-31"], ["", ""], ["", ""],
    ]  # fmt: skip


def test_errors_are_said_by_their_codes_in_the_language(tmp_path: Path) -> None:
    """The server's English stood in the middle of a German page; its words, which name the value, follow."""
    script = """
      document.documentElement.dataset.languages = '{"de": "Deutsch"}';
      localStorage.setItem("moviola.language", "de");
      const german = { "{said} (In the words of the server: {words})": "{said} (Der Server: {words})",
        "The server is busy; in a moment it has room again.": "Ausgelastet.", "Tags": "Schlagwörter",
        "The server cannot do anything with this.": "Damit nicht.",
        "the server answered {status}": "Antwort {status}" };
      const refusals = [
        { code: "busy", message: "200 requests wait" },
        { code: "invalid_value", field: "filter.tag", message: "tag '': empty" },
        { code: "invalid_value" }, { code: "new" }, { code: "invalid_value", field: "query", longest: 2000 },
      ];
      const refuse = () => ({ status: 503, error: refusals.shift() });
      serve([["GET /file", () => german], ["GET /api/library", refuse]]);
      const { SAID, library } = await page("base/api.js");
      const { questionFields } = await page("base/store.js");
      const { number, share, size, spanClock } = await page("base/format.js");
      questionFields.value = [{ name: "tag", label: "Tags" }];
      const said = [];
      while (refusals.length) said.push(await library().catch((error) => error.message));
      const frame = { start: 1, end: 1.04 };
      const numbers = [number(1234.5, 1), share(0.43), size(1500), spanClock(frame)];
      const { reasonSaid } = await page("base/reasons.js");
      const values = { width: "40000", height: "30000", most: "500,000,000", seconds: "3.0", suffix: ".5" };
      const reasons = ["too large", "damaged", "text"].map((code) => reasonSaid({ code, values }, ""));
      console.log(JSON.stringify([said, Object.keys(SAID), numbers, reasons]));
    """
    said, codes, numbers, reasons = run(script, tmp_path)
    assert reasons[0] == "pictures of 40.000 × 30.000 pixels; at most 500.000.000 pixels can be decoded"
    assert "damaged at 3,0 s;" in reasons[1] and "(.5)" in reasons[2]
    assert said == [
        "Ausgelastet. (Der Server: 200 requests wait)",
        "Schlagwörter: Damit nicht. (Der Server: tag '': empty)",
        "Damit nicht.",
        "Antwort new",
        "Too long: at most 2.000 characters can be given.",
    ]
    assert sorted(codes) == sorted(STATUS)
    assert numbers == ["1.234,5", "43\xa0%", "1,5 kB", "0:01.00–0:01.04"]


LOOKER = {"model": "stand-in", "host": "localhost:1", "stills": 5, "longest_side": 512, "letters": 1500}


def test_a_model_looks_by_its_button_alone(tmp_path: Path) -> None:
    """A link, or a saved search, that sends stills away as soon as it is opened; a button that hides it."""
    script = f"""
      const {{ askedBy, linkedSearch, searchOf }} = await page("base/asked.js");
      const {{ libraryInfo }} = await page("base/store.js");
      const {{ lookButton, lookNote }} = await page("search/looking.js");
      const linked = askedBy(linkedSearch(new URLSearchParams("query=a+dog&check=50")));
      const saved = askedBy(searchOf({{ query: "a dog", check: 50 }}));
      const looked = [];
      const found = (notes, count) => ({{ notes, moments: Array(count).fill({{}}) }});
      const button = (notes, count) => lookButton(found(notes, count), (n) => looked.push(n));
      const texts = (part) => typeof part === "string" ? [part] : (part.children ?? []).flatMap(texts);
      libraryInfo.value = {{ looker: null }};
      const nobody = button([], 3);
      libraryInfo.value = {{ looker: {json.dumps(LOOKER)} }};
      const shown = button([], 30);
      const again = [button([{{ kind: "looked" }}], 3), button([{{ kind: "not looked" }}], 3), button([], 0)];
      const notes = [lookNote("looked", "x", ["5", "1", "1", "10", "0.75", "assumed"]),
        lookNote("not looked", "timed out", ["3", "10"]), lookNote("not looked", "HTTP 500", ["1", "10"])];
      console.log(JSON.stringify([linked, saved, nobody, texts(shown), again, looked, notes]));
    """
    linked, saved, nobody, texts, again, looked, notes = run(script, tmp_path)
    assert linked == saved == {"query": "a dog"}
    assert nobody is None and again == [None, None, None] and looked == []
    assert texts == [
        "Let stand-in look at the best 10",
        "Sends at most 50 stills (512 pixels), and what is said or written there, to stand-in at localhost:1",
    ]
    assert notes == [
        "x looked at 10: 5 yes, 1 in part, 1 no. How often it is right was not measured; a probability of "
        "0.75 is assumed.",
        "3 of 10 not judged: it took too long.",
        "1 of 10 not judged: HTTP 500.",
    ]
