"""The files for Docker, Prometheus, Grafana and Kubernetes parse, and name metrics, options and paths that exist."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from litestar.testing import TestClient

from miserly.cli.main import cli
from miserly.serve import create_app
from oracles.hand_built import PLANS

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parent.parent.parent
DEPLOY = ROOT / "deploy"


def metric_names():
    with TestClient(create_app(PLANS["forest"]())) as client:
        text = client.get("/metrics").text
    families = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    return {name + end for name, kind in families.items() for end in ("", *(["_bucket"] * (kind == "histogram")))}


def expressions():
    alerts = yaml.safe_load((DEPLOY / "prometheus/alerts.yml").read_text())
    for rule in alerts["groups"][0]["rules"]:
        assert rule["alert"].startswith("Miserly")
        assert rule["annotations"]["summary"].endswith(".")
        yield rule["expr"]
    dashboard = json.loads((DEPLOY / "grafana/miserly.json").read_text())
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    for panel in dashboard["panels"]:
        yield from (target["expr"] for target in panel["targets"])


def test_dashboard_and_alerts_use_metrics_that_exist():
    known = metric_names()
    for expression in expressions():
        used = set(re.findall(r"miserly_\w+", expression))
        assert used <= known, used - known
        assert expression.count("(") == expression.count(")")


def test_compose_mounts_files_that_exist_and_sets_options_that_exist():
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    assert set(services) == {"miserly", "redis", "prometheus", "grafana"}
    sources = [volume.split(":")[0] for service in services.values() for volume in service.get("volumes", [])]
    assert all((ROOT / source).exists() for source in sources if source != "./models")
    options = {option.name for option in cli.commands["serve"].params}
    names = {*services["miserly"]["environment"], *re.findall(r"(MISERLY_SERVE_\w+)=", docker_text())}
    assert {name.removeprefix("MISERLY_SERVE_").lower() for name in names} <= options
    assert all(host.startswith("127.0.0.1:") for s in services.values() for host in s.get("ports", []))
    scraped = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())
    assert (DEPLOY / "prometheus" / scraped["rule_files"][0]).exists()
    for path in (DEPLOY / "grafana/provisioning").rglob("*.yml"):
        assert yaml.safe_load(path.read_text())["apiVersion"] == 1


def docker_text():
    return (ROOT / "Dockerfile").read_text()


def test_the_steps_of_the_dockerfile():
    text = docker_text().replace("\\\n", " ")
    copied = [line.split()[1:-1] for line in text.splitlines() if line.startswith("COPY") and "--from" not in line]
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    sources = {source for line in copied for source in line}
    assert sources == allowed
    assert all((ROOT / source).exists() for source in sources)
    extras = re.search(r'"\.\[(.*?)\]"', text)[1].split(",")
    project = (ROOT / "pyproject.toml").read_text()
    assert all(re.search(rf"^{extra} = \[", project, re.MULTILINE) for extra in extras)
    assert text.index("USER miserly") < text.index("ENTRYPOINT")
    assert "/healthz" in re.search(r"HEALTHCHECK.*", text)[0]
    entry = json.loads(re.search(r"ENTRYPOINT (.*)", text)[1])
    assert entry[0] == "miserly"
    assert entry[1] in cli.commands
    assert CliRunner().invoke(cli, ["warmup", "--help"]).exit_code == 0


def test_the_manifests_of_the_page():
    page = (ROOT / "docs/deploy.md").read_text()
    (text,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    deployment, service = yaml.safe_load_all(text)
    assert (deployment["kind"], service["kind"]) == ("Deployment", "Service")
    pod = deployment["spec"]["template"]
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    (container,) = pod["spec"]["containers"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert CliRunner().invoke(cli, ["serve", *container["args"], "--help"]).exit_code == 0
    assert pod["spec"]["terminationGracePeriodSeconds"] > 20
