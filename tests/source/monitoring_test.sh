#!/bin/bash
# Alert rules and dashboard: every metric that they name is one that the server has; Prometheus' own tool (promtool, of
# Debian's package prometheus) reads rules and expressions, and Grafana's own types (PyPI's grafana-foundation-sdk) read the
# dashboard, where they are installed.
#   monitoring_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -euo pipefail
source_dir=$2
mkdir -p "$3" && cd "$3"
python3 - "$source_dir" <<'PYTHON'
import json, pathlib, re, sys
source = pathlib.Path(sys.argv[1])
server = (source / "bitfed/rpc/server/live_status.cc").read_text()
known = {"bitfed_" + name for name in re.findall(r'(?:metric|if_set)\("([a-z_]+)"', server)} | {"bitfed_events_total"}
rules = (source / "packaging/prometheus-alerts.yml").read_text()
dashboard = json.loads((source / "packaging/grafana-dashboard.json").read_text())
expressions = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
assert expressions and dashboard["title"] and dashboard["schemaVersion"] >= 30
ids = [panel["id"] for panel in dashboard["panels"]]
assert len(ids) == len(set(ids)), "panels with the same id"
for panel in dashboard["panels"]:
    place = panel["gridPos"]
    assert place["x"] + place["w"] <= 24, panel["title"]
used = set(re.findall(r"bitfed_[a-z_]+", rules + " ".join(expressions)))
assert used <= known, f"not metrics of the server: {sorted(used - known)}"
with open("dashboard.yml", "w") as file:
    file.write("groups:\n  - name: dashboard\n    rules:\n")
    for number, expression in enumerate(expressions):
        plain = re.sub(r"\$__rate_interval|\$__interval", "5m", expression)
        plain = re.sub(r"\$\{?\w+\}?", "x", plain)
        file.write(f"      - record: panel_{number}\n        expr: {json.dumps(plain)}\n")
PYTHON
if python3 -c 'import grafana_foundation_sdk' 2>/dev/null; then
  python3 - "$source_dir" <<'PYTHON'
import json, pathlib, sys
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard
file = json.loads((pathlib.Path(sys.argv[1]) / "packaging/grafana-dashboard.json").read_text())
def lost(written, read, where=""):
    """What Grafana's types do not know, or know with another value."""
    if isinstance(written, dict) and isinstance(read, dict):
        for key in written: yield from lost(written[key], read.get(key, "nothing"), f"{where}/{key}")
    elif isinstance(written, list) and isinstance(read, list) and len(written) == len(read):
        for number, pair in enumerate(zip(written, read)): yield from lost(*pair, f"{where}/{number}")
    elif written != read:
        yield f"{where}: found {written}, Grafana has {read}"
faults = list(lost(file, json.loads(JSONEncoder().encode(Dashboard.from_json(file)))))
assert not faults, "packaging/grafana-dashboard.json" + "\n".join(faults)
PYTHON
else
  echo "grafana-foundation-sdk is not installed: its part is left out"
fi
if ! command -v promtool >/dev/null; then
  echo "promtool is not installed: its part is left out"
  exit 0
fi
promtool check rules "$source_dir/packaging/prometheus-alerts.yml" dashboard.yml
cat >test.yml <<YAML
rule_files: [$source_dir/packaging/prometheus-alerts.yml]
tests:
  - interval: 1m
    input_series:
      - { series: 'bitfed_waiting_seconds{instance="a"}', values: '0+60x60' }
      - { series: 'bitfed_paused{instance="a"}', values: '0x60' }
      - { series: 'bitfed_round{instance="a"}', values: '3x60' }
      - { series: 'bitfed_server_certificate_seconds{instance="a"}', values: '864000x60' }
    alert_rule_test:
      - eval_time: 20m
        alertname: BitfedStalled
      - eval_time: 40m
        alertname: BitfedServerCertificateExpires
        exp_alerts:
          - exp_labels: { severity: warning, instance: a }
            exp_annotations:
              summary: "a: the server's certificate expires in 10d 0h 0m 0s"
              description: "\`bitfed certs server HOST\` and copy server.pem and server.key; the server reads them within seconds."
YAML
promtool test rules test.yml
