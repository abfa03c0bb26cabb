"""Feature views of Feast as acquisitions: a store is read when the plan asks, once for all rows that want it."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import numpy as np
import pytest

import miserly as ms
from miserly.integrations import feast_costs, feast_extractors
from miserly.plan import EXIT, Gate, Node, Plan, RawFeatures

VIEWS = {"patients": {"age": 1.0}, "labs": {"crp": 5.0, "lactate": 2.0}}


class Store:
    """What the adapter uses of `feast.FeatureStore`."""

    def __init__(self):
        self.asked = []

    def get_feature_view(self, name):
        return SimpleNamespace(features=[SimpleNamespace(name=field) for field in VIEWS[name]])

    def get_online_features(self, features, entity_rows, full_feature_names):
        assert full_feature_names
        self.asked.append((tuple(features), [row["patient"] for row in entity_rows]))
        columns = {"patient": [row["patient"] for row in entity_rows]}
        for feature in features:
            view, field = feature.split(":")
            known = [None if row["patient"] < 0 else VIEWS[view][field] + row["patient"] for row in entity_rows]
            columns[f"{view}__{field}"] = known
        return SimpleNamespace(to_dict=lambda: columns)


def plan_of(costs):
    """Labs are bought for those who are 12 or older."""
    number = {name.split("__")[-1]: i for i, name in enumerate(costs.features)}
    nodes = (
        Node([0], [1.0], gate=Gate.above(12.0), passed=1, failed=EXIT),
        Node([1, 2], [1.0, 1.0]),
    )
    order = [number["age"], number["crp"], number["lactate"]]
    return Plan(costs, RawFeatures(order), nodes, [0.0], means=[0.0, 0.0, 0.0])


@pytest.mark.parametrize("full_names", [False, True])
def test_a_view_is_read_when_the_plan_asks(full_names):
    store = Store()
    costs = feast_costs(store, {"patients": 0.5, "labs": 12.0}, full_names=full_names)
    assert costs.features == (
        ("patients__age", "labs__crp", "labs__lactate") if full_names else ("age", "crp", "lactate")
    )
    assert costs.price(list(costs.features)) == 12.5
    extractors = feast_extractors(store, ["patients", "labs"], ["patient"], full_names=full_names)
    with ms.OnDemand(plan_of(costs), extractors) as runner:
        answers = runner.predict_many([{"patient": n} for n in (3, 20, 30)])
    assert [answer.cost for answer in answers] == [0.5, 12.5, 12.5]
    assert [float(answer.value) for answer in answers] == [4.0, 21.0 + 25.0 + 22.0, 31.0 + 35.0 + 32.0]
    assert store.asked == [(("patients:age",), [3, 20, 30]), (("labs:crp", "labs:lactate"), [20, 30])]


def test_unknown_keys_are_missing_values_and_entities_may_be_computed():
    store = Store()
    costs = feast_costs(store, {"patients": 0.5, "labs": 12.0})
    extractors = feast_extractors(store, ["patients", "labs"], lambda row: {"patient": int(row["id"])})
    with ms.OnDemand(plan_of(costs), extractors) as runner:
        assert runner.predict({"id": "-1"}).stopped == "answered"


def test_two_views_with_one_name_are_refused():
    class Double(Store):
        def get_feature_view(self, name):
            return SimpleNamespace(features=[SimpleNamespace(name="age")])

    with pytest.raises(ValueError, match="full_names=True"):
        feast_costs(Double(), {"a": 1.0, "b": 2.0})


def test_a_local_store(tmp_path):
    """Feast itself, with files and SQLite."""
    feast = pytest.importorskip("feast", reason="feast is not installed")
    pd = pytest.importorskip("pandas")
    from feast.types import Float64, Int64

    now = datetime.now(UTC)
    patient = feast.Entity(name="patient", join_keys=["patient"], value_type=feast.ValueType.INT64)
    (tmp_path / "feature_store.yaml").write_text(
        f"project: test\nregistry: {tmp_path}/registry.db\nprovider: local\n"
        f"online_store: {{type: sqlite, path: {tmp_path}/online.db}}\nentity_key_serialization_version: 3\n"
    )
    store = feast.FeatureStore(repo_path=str(tmp_path))
    ids, objects = np.arange(5), [patient]
    for view, fields in VIEWS.items():
        frame = pd.DataFrame({"patient": ids, "at": now - timedelta(hours=1)} | {f: v + ids for f, v in fields.items()})
        frame.to_parquet(tmp_path / f"{view}.parquet")
        schema = [feast.Field(name="patient", dtype=Int64), *(feast.Field(name=f, dtype=Float64) for f in fields)]
        source = feast.FileSource(path=str(tmp_path / f"{view}.parquet"), timestamp_field="at")
        objects.append(feast.FeatureView(name=view, entities=[patient], schema=schema, source=source))
    store.apply(objects)
    store.materialize(now - timedelta(days=1), now)
    costs = feast_costs(store, {"patients": 0.5, "labs": 12.0})
    assert costs.features == ("age", "crp", "lactate")
    with ms.OnDemand(plan_of(costs), feast_extractors(store, ["patients", "labs"], ["patient"], timeout=30)) as runner:
        answers = runner.predict_many([{"patient": n} for n in range(5)])
    assert [float(answer.value) for answer in answers] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert {answer.cost for answer in answers} == {0.5}
