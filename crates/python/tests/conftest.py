import pathlib
import subprocess
import sys

import pytest

import warpcube


@pytest.fixture
def db():
    with warpcube.connect(device="cpu") as connection:
        yield connection


class Server:
    """A server that runs, with its addresses and its token."""

    def __init__(self, folder: pathlib.Path, *arguments: str):
        self.token_file = folder / "token"
        command = [sys.executable, "-m", "warpcube", "serve", "--device", "cpu", "--token-file", str(self.token_file)]
        places = ["--listen", "127.0.0.1:0", "--flight-listen", "127.0.0.1:0"]
        self.process = subprocess.Popen([*command, *places, *arguments], stderr=subprocess.PIPE, text=True)
        told = {}
        while "token" not in told:
            line = self.process.stderr.readline()
            assert line, f"no server: {told}"
            name, _, value = line.strip().partition(": ")
            told[name] = value
        self.http, self.flight = told["HTTP"], told["Flight SQL"]
        self.token = self.token_file.read_text().strip()

    def connect(self):
        return warpcube.connect(self.flight, token=self.token)

    def end(self):
        self.process.terminate()
        self.process.wait(60)


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("server"))
    yield server
    server.end()


@pytest.fixture
def remote(server):
    with server.connect() as connection:
        yield connection
