"""The process: its start and end, signals, forks, the command line."""

import os
import signal
import subprocess
import sys
import textwrap

import warpcube


def run(source, *, timeout=60):
    code = textwrap.dedent(source)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=timeout)


def test_ctrl_c_ends_statements_wherever_they_are_read():
    for read in ["fetchall()", "arrow()", "reader().read_all()"]:
        done = run(
            f"""
            import os, signal, threading, time, warpcube
            db = warpcube.connect(device="cpu")
            rows = db.sql("SELECT count(*) FROM range(100000000000) AS a WHERE value % 7 = 3")
            threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            start = time.monotonic()
            try:
                rows.{read}
            except KeyboardInterrupt:
                print("interrupted")
            except Exception as error:
                print("interrupted" if "cancelled" in str(error) else error)
            print(time.monotonic() - start < 10, db.sql("SELECT 1").fetchall())
            """
        )
        assert done.stdout == "interrupted\nTrue [(1,)]\n", (read, done)


def test_other_threads_run_while_a_statement_does():
    done = run(
        """
        import threading, time, warpcube
        db = warpcube.connect(device="cpu", timeout="2s")
        def ask():
            try:
                db.sql("SELECT count(*) FROM range(100000000000) WHERE value % 7 = 3").fetchall()
            except warpcube.OperationalError as error:
                print(error.code)
        thread = threading.Thread(target=ask)
        thread.start()
        steps = 0
        while thread.is_alive():
            steps += 1
            time.sleep(0.01)
        print(steps > 20)
        """
    )
    assert done.stdout == "SQL-008\nTrue\n", done


def test_statements_that_do_not_pause_end_and_leave_threads_to_others():
    done = run(
        """
        import threading, time, warpcube
        db = warpcube.connect(device="cpu", timeout="1s")
        words = "(SELECT '{0}' || range || '{0}' AS s FROM range(20000))"
        start = time.monotonic()
        try:
            db.sql(f"SELECT count(*) FROM {words.format('x')} a, {words.format('%')} b WHERE a.s LIKE b.s").fetchall()
        except warpcube.OperationalError as error:
            print(error.code, time.monotonic() - start < 5)
        time.sleep(0.2)
        start = time.monotonic()
        print(db.sql("SELECT 1").fetchall(), warpcube.sql("SELECT 2").fetchall(), time.monotonic() - start < 5)
        """
    )
    assert done.stdout == "SQL-008 True\n[(1,)] [(2,)] True\n", done


def test_a_forked_child_gets_an_error_and_no_hang():
    done = run(
        """
        import os, warpcube
        warpcube.sql("SELECT 1").fetchall()
        child = os.fork()
        if child == 0:
            try:
                warpcube.sql("SELECT 1").fetchall()
            except RuntimeError as error:
                os._exit(7 if "forked" in str(error) else 1)
            os._exit(1)
        print(os.waitpid(child, 0)[1] >> 8, warpcube.sql("SELECT 2").fetchall())
        """
    )
    assert done.stdout == "7 [(2,)]\n", done


def test_the_interpreter_ends_while_statements_run():
    done = run(
        """
        import threading, time, warpcube
        rows = warpcube.sql("SELECT count(*) FROM range(100000000000) WHERE value % 7 = 3")
        threading.Thread(target=rows.fetchall, daemon=True).start()
        time.sleep(0.3)
        print("end")
        """
    )
    assert (done.stdout, done.returncode) == ("end\n", 0), done


def test_the_command_line_is_in_the_module():
    program = [sys.executable, "-m", "warpcube"]
    done = subprocess.run([*program, "--format", "csv", "-c", "SELECT 1 AS a"], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("a\n1\n", 0), done
    failed = subprocess.run([*program, "-c", "SELEC"], capture_output=True, text=True)
    assert failed.returncode == 1 and "SQL-001" in failed.stderr
    usage = subprocess.run([*program, "--nothing"], capture_output=True, text=True)
    assert usage.returncode == 2


def test_signals_are_pythons_own_again():
    warpcube.sql("SELECT 1").fetchall()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert os.getpid() > 0


def test_progress_is_told_where_a_person_sees_it():
    done = run(
        """
        import sys, warpcube
        class Terminal:
            text = ""
            def isatty(self): return True
            def write(self, text): self.text += text
            def flush(self): pass
        sys.stderr = Terminal()
        db = warpcube.connect(device="cpu", timeout="3s")
        db.sql("CREATE TABLE t AS SELECT value AS a FROM range(1000)")
        try:
            db.sql("SELECT count(*) FROM t AS x, t AS y, t AS z WHERE (x.a * y.a + z.a) % 7 = 3").arrow()
        except warpcube.OperationalError:
            pass
        told = sys.stderr.text
        print("%" in told, " s" in told, told.endswith("\\r") or not told)
        """
    )
    assert done.stdout == "True True True\n", done


def test_the_compiler_of_this_interpreters_packages_is_found(tmp_path):
    library = tmp_path / "nvidia/cu13/lib/libnvrtc.so.13"
    library.parent.mkdir(parents=True)
    library.touch()
    source = f"""
        import os, sys
        os.environ.pop("WARPCUBE_NVRTC", None)
        sys.path.insert(0, {str(tmp_path)!r})
        import warpcube
        warpcube.connect(device="cpu")
        print(os.environ.get("WARPCUBE_NVRTC"))
        """
    assert run(source).stdout.strip() == str(library)
