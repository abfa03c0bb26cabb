"""The examples that are served: spam with its client, and a search with a deadline."""

import threading
import time

import numpy as np
import pytest
import uvicorn

import miserly as ms
from examples.search import __main__ as search
from examples.search.extractors import EXTRACTORS
from examples.spam import client, serving
from examples.spam.mails import generate
from examples.spam.pipeline import extract, prepare
from miserly.serve import create_app


@pytest.fixture(scope="module")
def spam(tmp_path_factory):
    """A small model in a folder, as `python -m examples.spam --out` writes it."""
    mails = generate(120, seed=3)
    data = prepare(extract(mails.raw, mails.is_spam), {"train": np.arange(100), "test": np.arange(100, 120)}, 20)
    model = ms.GreedyMiserClassifier(data.costs, tradeoff=1e-3, n_estimators=20).fit(data.X["train"], data.y["train"])
    folder = tmp_path_factory.mktemp("spam")
    serving.save(model.plan_, data.knowledge, folder)
    return folder, data, mails


def test_what_was_learnt_comes_back_as_it_was(spam):
    folder, data, _ = spam
    again = serving.load_knowledge(folder)
    assert (again.prior, again.addresses, again.domains) == (
        data.knowledge.prior,
        data.knowledge.addresses,
        data.knowledge.domains,
    )
    assert (again.subject, again.words) == (data.knowledge.subject, data.knowledge.words)
    np.testing.assert_array_equal(again.grams, data.knowledge.grams)


def test_the_spam_client_asks_the_spam_server(spam, monkeypatch, capsys):
    folder, _, mails = spam
    monkeypatch.setenv("SPAM_FOLDER", str(folder))
    monkeypatch.setattr(client, "generate", lambda *_, **__: type(mails)(mails.raw[100:], mails.is_spam[100:]))
    app = create_app(ms.load_plan(folder / "spam.plan"), serving.extractors(), read_row=serving.read_row)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    client.main([f"http://127.0.0.1:{port}", "--deadline-ms", "20000"])
    server.should_exit = True
    thread.join()
    out = capsys.readouterr().out
    assert "20 mails" in out
    assert "answered 20" in out


def test_the_search_example_ranks_and_tells(monkeypatch, capsys, tmp_path):
    sizes = {"N_TRAIN": 30, "N_TEST": 3, "N_DOCUMENTS": 40, "CHEAP": 10, "ALL": 30, "N_EXPENSIVE": 10}
    for name, value in sizes.items():
        monkeypatch.setattr(search, name, value)
    monkeypatch.setattr(search, "DEADLINE", 20.0)  # whatever the machine does meanwhile
    search.main(["--out", str(tmp_path / "search.plan")])
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].endswith("answered 100%")
    plan = ms.load_plan(tmp_path / "search.plan")
    one = search.listed(np.random.default_rng(5), 40)
    with ms.OnDemand(plan, EXTRACTORS) as runner:
        ranking = runner.rank(one.query, one.documents)
    assert sum("meaning" in answer.acquired for answer in ranking.answers) == 10
    np.testing.assert_array_equal([a.cost for a in ranking.answers], plan.predict_cost(search.matrix(one)))
    assert search.quality_of(one, ranking) > 0.4
