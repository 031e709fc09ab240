"""Sets of models compiled for several shapes."""

from __future__ import annotations

import pytest
from test_differences import changed

from wirelint.compare import bucket_mismatches
from wirelint.facts import ModelFacts, PaddingFacts


def bucket(length: int, **changes: object) -> ModelFacts:
    model = changed(**{f"input_{index}_shape": (1, length) for index in range(3)}, **changes)
    model.path = f"bucket{length}.xml"
    return model


def test_sound_set() -> None:
    assert bucket_mismatches([bucket(length) for length in (32, 64, 128)]) == {}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"input_1_name": "mask", "input_1_names": ("mask",)}, "is called 'mask'"),
        ({"input_1_dtype": "i32"}, "i32 here and i64 in bucket32.xml"),
        ({"site_0_mask": "constant"}, "the padding mask is the same for all inputs"),
        ({"output_0_padding": PaddingFacts("leaks", "safe")}, "padding on the right"),
    ],
)
def test_one_that_differs(changes: dict[str, object], said: str) -> None:
    mismatches = bucket_mismatches([bucket(32), bucket(64, **changes), bucket(128)])
    assert list(mismatches) == ["bucket64.xml"]
    assert said in mismatches["bucket64.xml"][0]


def test_the_odd_one_out_is_named_wherever_it_stands() -> None:
    odd = bucket(128, output_0_padding=PaddingFacts("leaks", "safe"))
    for models in ([odd, bucket(32), bucket(64)], [bucket(32), odd, bucket(64)], [bucket(32), bucket(64), odd]):
        assert list(bucket_mismatches(models)) == ["bucket128.xml"]


def test_what_the_first_lacks_counts_too() -> None:
    mismatches = bucket_mismatches([bucket(32, site_0_mask="constant"), bucket(64)])
    assert "for bucket32.xml: the padding mask" in mismatches["bucket64.xml"][0]


def test_twins_of_one_shape() -> None:
    twin = bucket(32)
    twin.path = "copy.xml"
    assert bucket_mismatches([bucket(32), twin]) == {"copy.xml": ("it has the same input shapes as bucket32.xml",)}
