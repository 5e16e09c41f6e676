import pytest

import warpcube


@pytest.fixture
def db():
    with warpcube.connect(device="cpu") as connection:
        yield connection
