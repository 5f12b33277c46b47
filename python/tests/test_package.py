"""Tests of the package with runs in virtual time, whose results are the same on every machine."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pandas
import polars
import pyarrow

import planimeter
from planimeter import Run, Stream, Switch, Table, UsageError
from planimeter.command import installed

SET: dict[str, object] = {"simulate": True, "frame": [64], "repeats": 3, "seconds": 0.01}

ADDRESSES: dict[str, Any] = {
    "mac_source": "02:00:00:00:00:01",
    "mac_destination": "02:00:00:00:00:02",
    "ip_source": "10.0.0.1",
    "ip_destination": "10.0.1.1",
}


def enable_interrupts() -> None:
    """Restores the default action of SIGINT, which a process in the background may ignore."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def execute(*words: str) -> subprocess.CompletedProcess[str]:
    """Executes a command line."""
    return subprocess.run([installed(), *words], capture_output=True, text=True, check=False)


class WithRun(unittest.TestCase):
    """A run of two targets."""

    folder: ClassVar[tempfile.TemporaryDirectory[str]]
    run_: ClassVar[Run]
    steps: ClassVar[list[planimeter.Progress]]

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        cls.steps = []
        cls.run_ = planimeter.run(
            "latency", on=["switch", "bridge"], link="memory", effort="quick", set=SET, out=cls.folder.name,
            progress=cls.steps.append,
        )

    @classmethod
    def tearDownClass(cls) -> None:
        cls.folder.cleanup()


class Runs(WithRun):
    def test_a_run_equals_that_of_the_command_line(self) -> None:
        self.assertEqual(self.run_.targets, ["switch", "bridge"])
        self.assertEqual(self.run_.experiments, ["latency"])
        self.assertFalse(self.run_.is_partial)
        words = self.run_.command_line.split()[1:]
        again = execute(*words, "--json", "--output", self.folder.name)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(json.loads(again.stdout)["trials"], self.run_.record["trials"])

    def test_progress_is_reported_for_each_trial(self) -> None:
        self.assertEqual(self.steps[-1].done, len(self.steps))
        self.assertGreaterEqual(self.steps[-1].trials, len(self.steps))
        self.assertEqual([it.done for it in self.steps], [*range(1, len(self.run_.trials) + 1)])
        self.assertIn("latency switch", self.steps[0].text)

    def test_other_libraries_import_a_table_completely(self) -> None:
        trials = self.run_.trials
        wanted = [it["frames_offered"] for it in self.run_.record["trials"]]
        self.assertEqual(trials.column("frames_offered"), wanted)
        self.assertEqual(pyarrow.table(trials)["frames_offered"].to_pylist(), wanted)
        self.assertEqual(polars.DataFrame(trials)["frames_offered"].to_list(), wanted)
        frame = trials.to_pandas()
        self.assertIsInstance(frame, pandas.DataFrame)
        self.assertEqual(frame["frames_offered"].tolist(), wanted)
        self.assertEqual(trials.to_polars().columns, trials.columns)
        self.assertEqual(trials.to_arrow().num_rows, len(trials))

    def test_columns_have_units_and_missing_values_are_null(self) -> None:
        trials = self.run_.trials
        self.assertEqual(trials.units["latency_ns_p50"], "ns")
        field = trials.to_arrow().schema.field("latency_ns_p50")
        self.assertEqual(field.metadata[b"unit"], b"ns")
        row = trials[0]
        self.assertIsNone(row["curve_name"])
        self.assertEqual(trials.to_arrow()["curve_name"].null_count, len(trials))
        with self.assertRaises(IndexError):
            trials[len(trials)]
        with self.assertRaisesRegex(KeyError, "there is no column 'rate'"):
            trials.column("rate")

    def test_a_value_has_its_interval(self) -> None:
        rows = [it for it in self.run_.values if it["metric"] == "latency_ns_p50" and it["target"] == "switch"]
        found = self.run_.value("latency_ns_p50", target="switch", x=rows[0]["x"])
        self.assertEqual(self.run_.value("latency_ns_p50", target="ours", x=rows[0]["x"]), found)
        cell = next(
            it for it in self.run_.record["cells"]
            if it["metric"] == "latency_ns_p50" and it["target"] == "switch"
        )
        self.assertEqual((found.value, found.n, found.unit), (cell["value"], 3, "ns"))
        self.assertEqual((found.low, found.high), (cell["interval"]["low"], cell["interval"]["high"]))
        self.assertIn(" ns (", str(found))
        self.assertIn(found.exclusion, ("rates and times are simulated", None))
        self.assertEqual(found.disturbed_repeats, 0)
        with self.assertRaisesRegex(UsageError, "latency_ns_p50 is not one value: found"):
            self.run_.value("latency_ns_p50")
        with self.assertRaisesRegex(UsageError, "known metrics are .*latency_ns_p50"):
            self.run_.value("speed")

    def test_a_histogram_has_every_frame(self) -> None:
        trial = self.run_.trials[0]
        histogram = self.run_.histogram(trial["id"])
        assert histogram is not None
        self.assertEqual(sum(histogram.buckets().column("frames")), len(histogram))
        self.assertEqual(histogram.ns_at(50), trial["latency_ns_p50"])
        self.assertIsNone(histogram.ns_at(100), "too few samples are above it")
        self.assertIsNone(self.run_.histogram(10**6))
        with self.assertRaises(UsageError):
            histogram.ns_at(101)

    def test_figures_equal_those_of_the_report(self) -> None:
        for name, title in self.run_.figures.items():
            figure = self.run_.plot(name)
            drawn = self.run_.folder / "figures" / f"{name}.svg"
            self.assertEqual(figure.svg, drawn.read_text(), name)
            self.assertEqual(figure.title, title)
        figure = self.run_.plot()
        names = [it["name"] for it in figure.data["series"]]
        self.assertIn("planimeter switch (OpenFlow)", names)
        with self.assertRaisesRegex(UsageError, "there is no figure 'no'"):
            self.run_.plot("no")

    def test_matplotlib_draws_the_measured_values(self) -> None:
        import matplotlib

        matplotlib.use("agg")
        figure = self.run_.plot()
        axes = figure.draw()
        series = next(it for it in figure.data["series"] if it["name"] == "planimeter switch (OpenFlow)")
        container = next(it for it in axes.containers if it.get_label() == "planimeter switch (OpenFlow)")
        self.assertEqual(list(container[0].get_ydata()), series["y"])
        self.assertEqual(axes.get_ylabel(), figure.data["y"]["label"])

    def test_a_rebuilt_report_has_the_same_bytes(self) -> None:
        page = self.run_.report(Path(self.folder.name) / "again")
        self.assertEqual(page.read_bytes(), (self.run_.folder / "report.html").read_bytes())
        self.assertIn("latency", self.run_.summary())

    def test_targets_of_a_run_are_compared(self) -> None:
        sides = [f"{self.run_.folder}:{it}" for it in self.run_.targets]
        found = planimeter.compare(*sides, gates=["latency_ns_p50<=1.10"])
        found.check()
        self.assertFalse(found.has_failed)
        self.assertIn("planimeter", found.to_markdown())
        failed = planimeter.compare(*sides, gates=["latency_ns_p50<=0.5"])
        self.assertTrue(failed.has_failed)
        with self.assertRaisesRegex(planimeter.GateFailed, "latency_ns_p50<=0.5.* failed: latency"):
            failed.check()
        with self.assertRaisesRegex(UsageError, "has no result"):
            planimeter.compare(*sides, gates=["flow_mods_added_per_s>=0.97"])

    def test_a_single_gate_can_be_a_text(self) -> None:
        sides = [f"{self.run_.folder}:{it}" for it in self.run_.targets]
        one = planimeter.compare(*sides, gates="latency_ns_p50<=1.10")
        self.assertEqual({gate["gate"] for cell in one.cells for gate in cell["gates"]}, {"latency_ns_p50<=1.1"})
        self.assertFalse(one.is_inconclusive)
        self.assertEqual(one.worse, one.data["worse"])

    def test_stored_runs_are_listed_and_read(self) -> None:
        found = planimeter.runs(self.folder.name, experiment="latency", partial=False)
        self.assertIn(self.run_.folder, [it.folder for it in found])
        stored = next(it for it in found if it.folder == self.run_.folder)
        self.assertEqual((stored.targets, stored.effort), (("switch", "bridge"), "quick"))
        self.assertEqual(stored.load().record, self.run_.record)
        self.assertEqual(planimeter.runs(self.folder.name, target="nobody"), [])
        with self.assertRaisesRegex(UsageError, "--filter speed=1"):
            planimeter.runs(self.folder.name, speed="1")

    def test_a_run_has_a_short_representation(self) -> None:
        self.assertEqual(len(repr(self.run_).splitlines()), 1)
        html = self.run_._repr_html_()
        self.assertIn("<th>targets</th><td>switch, bridge</td>", html)
        self.assertLess(len(html), 1000)
        self.assertFalse(hasattr(self.run_, "_repr_markdown_"), "a notebook would display the whole summary")

    def test_notebooks_display_tables(self) -> None:
        html = self.run_.trials._repr_html_()
        self.assertIn("<th>latency_ns_p50<br><small>ns</small></th>", html)
        self.assertEqual(repr(self.run_.trials)[:9], "<Table of")
        self.assertIsInstance(self.run_.values, Table)


PLAN = """
name = "office"
effort = "quick"
seed = 7
on = ["switch", "bridge"]
link = "memory"

[set]
simulate = true
seconds = 0.01
repeats = 3

[[step]]
run = "latency"
set.load = 50

[[gate]]
metric = "latency_ns_p50"
ratio = 1.10
"""


class Plans(unittest.TestCase):
    def test_a_plan_returns_a_campaign(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            plan = Path(folder) / "office.toml"
            plan.write_text(PLAN)
            campaign = planimeter.run(plan, out=folder)
            (step,) = campaign
            run = campaign[step]
            self.assertIsInstance(run, Run)
            self.assertEqual((run.record["seed"], run.record["effort"]), (7, "quick"))
            self.assertEqual((campaign.name, len(campaign)), ("office", 1))
            self.assertEqual(campaign.outcome, "passed")
            campaign.check()
            self.assertTrue(campaign.report.is_file())
            self.assertEqual(len(repr(campaign).splitlines()), 1)
            self.assertIn("<td>switch, bridge</td>", campaign._repr_html_())
            plan.write_text(PLAN.replace("ratio = 1.10", "ratio = 0.5"))
            failed = planimeter.run_plan(plan, seed=8, out=folder)
            self.assertTrue(failed.has_failed)
            self.assertEqual(next(iter(failed.runs.values())).record["seed"], 8)
            with self.assertRaisesRegex(planimeter.GateFailed, "latency_ns_p50<=0.5 failed: step latency: latency, "):
                failed.check()


class Modules(unittest.TestCase):
    def test_a_failed_module_fails_the_run(self) -> None:
        script = (
            "from planimeter import *\n"
            "class Mine(Module):\n"
            "    \"\"\"Mine.\"\"\"\n"
            "    def start(self, facts):\n"
            "        if self.repeat == 2:\n"
            "            raise ValueError('no such thing')\n"
            "        self.report('kept_ns', 7, 1)\n"
            "        self.end()\n"
        )
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "mine.py"
            file.write_text(script)
            with self.assertRaisesRegex(planimeter.IrregularError, "no such thing") as raised:
                planimeter.run(str(file), on="switch", link="memory", effort="quick", out=folder,
                               set={"simulate": True, "repeats": 3})
            run = raised.exception.run
            assert isinstance(run, Run)
            self.assertEqual(len(run.trials), 3, "partial results are kept")


class Counts(unittest.TestCase):
    def test_whole_numbers_have_all_digits(self) -> None:
        value = planimeter.Value(1_048_576.0, "rules", 3, 1_048_575.0, 1_048_577.0, 95.0, ())
        self.assertEqual(str(value), "1048576 rules (1048575 to 1048577)")

    def test_a_bound_is_printed_as_a_bound(self) -> None:
        value = planimeter.Value(20_000.0, "rules", 1, None, None, None, (), "lower", "search_limit")
        self.assertEqual(str(value), "≥ 20000 rules (n=1)")


class Errors(unittest.TestCase):
    def test_errors_have_the_text_of_the_command_line(self) -> None:
        cases: list[tuple[list[str], Callable[[], object]]] = [
            (["run", "latensy"], lambda: planimeter.run("latensy")),
            (["run", "latency", "--on=nobody"], lambda: planimeter.run("latency", on="nobody")),
            (["run", "latency", "--set=frame=1"], lambda: planimeter.run("latency", set={"frame": 1})),
            (["report", "/nowhere"], lambda: planimeter.load("/nowhere")),
            (["compare", "a/b", "c/d"], lambda: planimeter.compare("a/b", "c/d")),
        ]
        for words, call in cases:
            printed = execute(*words)
            self.assertEqual(printed.returncode, 2, words)
            with self.assertRaises(UsageError) as raised:
                call()
            self.assertEqual(f"planimeter: {raised.exception}", printed.stderr.strip(), words)

    def test_a_missing_program_is_named(self) -> None:
        with self.assertRaisesRegex(UsageError, "/nowhere/planimeter cannot be started"):
            planimeter.run("latency", program="/nowhere/planimeter")

    def test_ctrl_c_ends_a_run_and_its_results_are_stored(self) -> None:
        script = (
            "import planimeter\n"
            "try:\n"
            "    planimeter.run('latency', on='switch', link='memory', effort='quick', progress=lambda it: print(it.done, flush=True),\n"
            "                   set={'rig': 'sim', 'repeats': 200, 'seconds': 0.02})\n"
            "except planimeter.Interrupted as it:\n"
            "    print('kept', it.run.is_partial, len(it.run.trials) > 0, it)\n"
        )
        with tempfile.TemporaryDirectory() as folder:
            process = subprocess.Popen(
                [sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=folder, text=True,
                preexec_fn=enable_interrupts,
            )
            assert process.stdout is not None
            self.assertEqual(process.stdout.readline(), "1\n")
            process.send_signal(signal.SIGINT)
            rest, _ = process.communicate()
            last = rest.strip().splitlines()[-1]
            [run] = (Path(folder) / "runs").iterdir()
            hint = f"(hint: continue with 'planimeter run --resume runs/{run.name}')"
            self.assertEqual(last, f"kept True True interrupted: partial results are kept {hint}")


class Streams(unittest.TestCase):
    def test_frames_equal_those_of_the_generator(self) -> None:
        stream = Stream(
            frame_bytes=128, rate_pps=1000, vary=[{"count": 10, "port_source": {"first": 1000, "step": 1}}], **ADDRESSES
        )
        self.assertEqual((stream.flow_count, stream.rate_pps, stream.frame_bytes_mean), (10, 1000.0, 128.0))
        frames = list(stream.frames(20))
        self.assertEqual([at for at, _ in frames], [number * 1_000_000 for number in range(20)])
        ports = [int.from_bytes(frame[34:36]) for _, frame in frames]
        self.assertEqual(ports, [1000 + number % 10 for number in range(20)])
        self.assertTrue(all(len(frame) == 124 for _, frame in frames))
        self.assertEqual(frames[0][1][:14].hex(), "0200000000020200000000010800")

    def test_the_command_line_reads_written_files(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            genome = Stream(id=3, genome="2a1d", rate_pps=1e6, schedule={"poisson": {"seed": 7}}, **ADDRESSES)
            file = planimeter.write_streams(f"{folder}/two.toml", [Stream(frame_bytes=64, rate_pps=5, **ADDRESSES), genome])
            dry_run = execute("run", "forwarding-rate", "--on=switch", "--link=memory", f"--set=stream={file}", "--dry-run")
            self.assertEqual(dry_run.returncode, 0, dry_run.stderr)
            written = genome.write_capture(f"{folder}/three.pcapng", 30)
            counted = execute("capture", f"--port=pcap:{written}", "--json")
            self.assertEqual(counted.returncode, 0, counted.stderr)
            self.assertRegex(counted.stdout, r'"frames": ?30\b')

    def test_invalid_keys_raise_an_error_immediately(self) -> None:
        with self.assertRaisesRegex(UsageError, "missing field `mac_source`"):
            Stream(frame_bytes=64, rate_pps=1)
        with self.assertRaisesRegex(UsageError, "frame_byte"):
            Stream(frame_byte=64, rate_pps=1, **ADDRESSES)
        with self.assertRaisesRegex(UsageError, "stream 1"):
            Stream(frame_bytes=20, rate_pps=1, **ADDRESSES)
        with self.assertRaises(TypeError):
            Stream(frame_bytes=64, rate_pps=1j, **ADDRESSES)


class Switches(unittest.TestCase):
    def setUp(self) -> None:
        self.frame = Stream(frame_bytes=64, rate_pps=1, **ADDRESSES).frame(0)

    def test_a_rule_forwards_until_it_times_out(self) -> None:
        switch = Switch(ports=3)
        rule = {"type": "flow_mod", "match": {"in_port": 1}, "actions": [{"output": 2}]}
        self.assertEqual(switch.send({**rule, "idle_timeout_s": 5, "flags": ["send_flow_removed"]}), [])
        switch.put(1, self.frame)
        self.assertEqual((switch.take(2), switch.take(3)), ([self.frame], []))
        (reply,) = switch.send({"type": "multipart_request", "of": "flow"})
        self.assertEqual([row["packets"] for row in reply["rows"]], [1])
        switch.pass_time(6)
        self.assertEqual([it["type"] for it in switch.messages()], ["flow_removed"])
        switch.put(1, self.frame)
        self.assertEqual(switch.take(2), [])

    def test_rejected_messages_have_an_error_reply_and_invalid_ones_raise(self) -> None:
        switch = Switch(ports=2, version="1.0")
        self.assertEqual(switch.version, "1.0")
        (error,) = switch.send({"type": "flow_mod", "actions": [{"output": 77}]})
        self.assertEqual((error["type"], error["code"]), ("error", "bad_action/bad_out_port"))
        with self.assertRaisesRegex(UsageError, "unknown field"):
            switch.send({"type": "flow_mod", "match": {"in_prt": 1}})
        for call in (lambda: switch.put(3, b""), lambda: switch.take(0), lambda: switch.put(1, bytes(100_000))):
            with self.assertRaises(UsageError):
                call()
        with self.assertRaises(UsageError):
            Switch(ports=0)
        with self.assertRaises(UsageError):
            Switch(version="9")

    def test_equal_calls_give_equal_results(self) -> None:
        def results() -> list[object]:
            switch = Switch(ports=2)
            out: list[object] = [switch.send("barrier_request"), switch.send("features_request")]
            switch.send({"type": "flow_mod", "priority": 0, "actions": [{"output": "controller"}]})
            switch.put(1, self.frame)
            switch.put(1, b"\xff" * 70)
            return [*out, switch.messages(), switch.now]

        first, second = results(), results()
        self.assertEqual(first, second)
        self.assertIn("packet_in", json.dumps(first))


class WithoutTheCompiledPart(unittest.TestCase):
    def test_modules_work_and_other_names_raise_an_error_with_a_hint(self) -> None:
        files = ["__init__.py", "events.py", "module.py", "parameters.py", "protocol.py", "renamed.py"]
        script = (
            "from planimeter import *\n"
            "import planimeter\n"
            "assert issubclass(type('Mine', (Module,), {}), Module)\n"
            "try:\n    planimeter.run\n"
            "except AttributeError as error:\n    print(error)\n"
        )
        with tempfile.TemporaryDirectory() as folder:
            package = Path(folder) / "planimeter"
            package.mkdir()
            for name in files:
                shutil.copy(Path(planimeter.__file__).parent / name, package)
            # Without site-packages, as planimeter starts scripts if the package is not installed.
            words = [sys.executable, "-S", "-c", script]
            done = subprocess.run(
                words, env={**os.environ, "PYTHONPATH": folder}, capture_output=True, text=True, check=False
            )
        self.assertEqual(done.stderr, "")
        wanted = "planimeter.run requires the compiled part of this package (hint: run 'pip install ./python')\n"
        self.assertEqual(done.stdout, wanted)


class Command(unittest.TestCase):
    def test_the_command_is_the_program(self) -> None:
        version = execute("--version").stdout
        self.assertTrue(re.fullmatch(r"planimeter 0\..*\n", version), version)
        self.assertEqual(version, f"planimeter {planimeter.__version__}\n")
        module = subprocess.run([sys.executable, "-m", "planimeter", "--version"], capture_output=True, text=True, check=True)
        self.assertEqual(module.stdout, version)


if __name__ == "__main__":
    unittest.main()
