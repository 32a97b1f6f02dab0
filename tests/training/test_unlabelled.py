"""Training with images that have no label: SimCLR, FixMatch, PATE-FM, and the clusters that choose questions."""

import copy
import math

import numpy as np
import pytest
import torch

from bystander._validate import InputError
from bystander.mechanisms import ConfidentGnmax
from bystander.training import FixMatch, Heads, PateFmClassifier, Recipe, SimClr, Strong, Weak, pretrain, train_fixmatch
from bystander.training import small_cnn as cnn
from bystander.training.batches import Images
from bystander.training.clusters import clusters, typical
from bystander.training.fixmatch import follower
from bystander.training.loop import Checkpoint, initial, predict
from bystander.training.pate_fm import shards, votes
from bystander.training.simclr import contrast
from tests.training.problems import Recorded

CPU = torch.device("cpu")
STEPS = Recipe(epochs=3, batch=32, rate=0.05, schedule="cosine", warmup=0.1, precision="fp32")


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def pictures(n=192, seed=0, noise=60):
    """Four classes: which quarter of the image is lit."""
    random = np.random.default_rng(seed)
    y = np.arange(n) % 4
    images = random.integers(0, noise, (n, 12, 12, 3), dtype=np.uint8)
    for label in range(4):
        row, column = 6 * (label // 2), 6 * (label % 2)
        images[y == label, row : row + 6, column : column + 6] += 120
    return images, y


def held(images):
    return Images(torch.from_numpy(images))


def net(seed=0):
    return initial(lambda: cnn((8, 8, 8)).build((3, 12, 12), 4), seed, CPU)


def weights(module):
    return torch.cat([value.flatten().float() for value in module.state_dict().values()])


def test_contrast_is_the_mean_over_views_of_minus_log_softmax_at_the_partner():
    torch.manual_seed(0)
    one, two = (torch.nn.functional.normalize(torch.randn(5, 3), dim=1) for _ in range(2))
    both, total = torch.cat((one, two)), 0.0
    for i in range(10):
        alike = [math.exp(float(both[i] @ both[j]) / 0.3) for j in range(10)]
        total -= math.log(alike[(i + 5) % 10] / (sum(alike) - alike[i]))
    assert float(contrast(one, two, 0.3)) == pytest.approx(total / 10, rel=1e-5)


def trunk(epochs=3, **given):
    told = []
    recipe = Recipe(epochs=epochs, batch=48, rate=0.1, schedule="cosine", warmup=0.1, precision="fp32")
    made = pretrain(net(), held(pictures()[0]), recipe, SimClr(temperature=0.5), device=CPU,
                    progress=lambda *state: told.append(state), **given)  # fmt: skip
    return made, told


def test_the_trunk_learns_is_told_of_and_is_the_same_by_seed():
    one, told = trunk(seed=3)
    assert [state[:2] for state in told] == [(1, 3), (2, 3), (3, 3)]
    assert told[-1][2] < told[0][2] < math.log(95) + 0.3
    assert torch.equal(weights(one), weights(trunk(seed=3)[0]))
    assert not torch.equal(weights(one), weights(trunk(seed=4)[0]))


class StopError(Exception):
    pass


def test_a_trunk_that_was_cut_off_ends_with_the_same_weights(tmp_path):
    def cut(done, of, loss):
        if done == 2:
            raise StopError

    images, recipe = held(pictures()[0]), Recipe(epochs=3, batch=48, rate=0.1, precision="fp32")
    at = Checkpoint(tmp_path / "trunk.pt")
    with pytest.raises(StopError):
        pretrain(net(), images, recipe, device=CPU, checkpoint=at, progress=cut)
    resumed = pretrain(net(), images, recipe, device=CPU, checkpoint=at)
    assert torch.equal(weights(resumed), weights(pretrain(net(), images, recipe, device=CPU)))
    with pytest.raises(InputError, match="a checkpoint of another training"):
        pretrain(net(), images, recipe, seed=1, device=CPU, checkpoint=at)
    with pytest.raises(InputError, match="a checkpoint of another training"):
        pretrain(net(1), images, recipe, device=CPU, checkpoint=at)
    with pytest.raises(InputError, match="a checkpoint of another training"):
        pretrain(net(), held(pictures(seed=1)[0]), recipe, device=CPU, checkpoint=at)


def test_a_network_without_features_is_refused():
    with pytest.raises(InputError, match="net is Linear, which has no features"):
        pretrain(torch.nn.Linear(2, 2), held(pictures()[0]), STEPS, device=CPU)


def matched(images, y, known, recipe=STEPS, threshold=0.8, **given):
    strong = Strong(shift=1, operations=1, cutout=2)
    how = FixMatch(ratio=2, threshold=threshold, weak=Weak(flip=False, shift=1), strong=strong)
    targets = torch.from_numpy(y[known])
    return train_fixmatch(net(), held(images[known]), targets, held(images), recipe, how, device=CPU, **given)


def test_fixmatch_gains_over_the_same_steps_on_the_labels_alone():
    """One label a class: GAIN."""
    images, y = pictures(400, noise=130)
    fresh, truth = pictures(400, seed=1, noise=130)
    recipe = Recipe(epochs=10, batch=16, rate=0.05, schedule="cosine", warmup=0.1, precision="fp32")
    both = (matched(images, y, np.arange(4), recipe, threshold) for threshold in (0.8, 1 - 1e-9))
    match, alone = (float((predict(each, held(fresh), device=CPU).argmax(1) == truth).mean()) for each in both)
    assert match > alone + 0.02


def test_fixmatch_resumes_to_the_same_mean_network(tmp_path):
    def cut(done, of, loss):
        if done == 2:
            raise StopError

    images, y = pictures()
    known, at = np.arange(8), Checkpoint(tmp_path / "student.pt")
    with pytest.raises(StopError):
        matched(images, y, known, checkpoint=at, progress=cut)
    assert torch.equal(weights(matched(images, y, known, checkpoint=at)), weights(matched(images, y, known)))
    with pytest.raises(InputError, match="a checkpoint of another training"):
        matched(images[::-1].copy(), y[::-1].copy(), len(y) - 1 - known, checkpoint=at)  # the same labelled ones
    with pytest.raises(InputError, match="targets has 8 rows: there are 4 labelled images"):
        train_fixmatch(net(), held(images[:4]), torch.zeros(8), held(images), STEPS, device=CPU)


def test_the_mean_network_follows_weights_and_running_statistics():
    one, two = net(0), net(1)
    two.body[3].running_mean.fill_(3.0)
    before, other = copy.deepcopy(one.state_dict()), two.state_dict()
    follower(one, two)(0.9)
    for name, value in one.state_dict().items():
        if value.is_floating_point():
            assert torch.allclose(value, 0.9 * before[name] + 0.1 * other[name], atol=1e-6)


def test_teachers_shards_are_disjoint_and_one_label_moves_one_vote():
    rows = shards(103, 10, 0)
    assert rows.shape == (10, 10)
    assert len(np.unique(rows)) == 100
    random = np.random.default_rng(0)
    y = random.integers(0, 3, 103)
    features = (np.eye(3)[y] + random.normal(0, 0.7, (103, 3))).astype(np.float32)
    given = {"asked": np.arange(100), "how": Heads(teachers=10, steps=30), "classes": 3, "device": CPU}
    whole = votes(features, y, **given)
    assert (whole.sum(1) == 10).all()
    assert (whole.argmax(1) == y[:100]).mean() > 0.65
    for row in (0, 50, 102):
        changed = y.copy()
        changed[row] = (changed[row] + 1) % 3
        moved = np.abs(votes(features, changed, **given) - whole).sum(1)
        assert moved.max() <= 2
    with pytest.raises(InputError, match="teachers is 10: give a whole number from 1 to 4"):
        shards(4, 10)


def test_typical_rows_are_one_a_cluster():
    random = np.random.default_rng(0)
    which = np.repeat(np.arange(6), 20)
    features = (3 * np.eye(6)[which] + random.normal(0, 0.2, (120, 6))).astype(np.float32)
    found = clusters(features, 6, device=CPU)
    assert all(len(set(found[which == k])) == 1 for k in range(6))
    assert sorted(which[typical(features, 6, device=CPU)]) == list(range(6))
    assert len(set(typical(features, 50, device=CPU))) == 50
    with pytest.raises(InputError, match="many is 121: there are 120 rows"):
        clusters(features, 121, device=CPU)


def test_pate_fm_learns_from_its_release_alone(tmp_path):
    images, y = pictures(320)
    fresh, truth = pictures(80, seed=1)
    mechanism = ConfidentGnmax(classes=4, sigma2=2.0, answers=24, sigma1=2.0, threshold=6, queries=24, teachers=16)
    model = PateFmClassifier(
        mechanism,
        cnn((8, 8, 8)),
        heads=Heads(teachers=16, steps=50),
        trunk=Recipe(epochs=3, batch=64, rate=0.1, precision="fp32"),
        student=Recipe(epochs=8, batch=16, rate=0.05, schedule="cosine", warmup=0.1, precision="fp32"),
        fixmatch=FixMatch(ratio=2, weak=Weak(flip=False, shift=1), strong=Strong(shift=1, operations=1, cutout=2)),
        device="cpu",
        seed=0,
        checkpoints=tmp_path,
    )
    read = Recorded(y)
    model.fit(images, read)
    assert [chain[:2] for chain in read.readers] == [["mechanisms.base.read_labels", "training.pate_fm.votes"]]
    assert model.release_.guarantee("replace").epsilon == mechanism.guarantee("replace").epsilon
    assert set(model.release_.output) <= {-1, 0, 1, 2, 3}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["student.pt", "trunk.pt"]
    assert (model.predict(fresh) == truth).mean() > 0.6
    again = model.predict_proba(fresh)
    assert np.array_equal(model.fit(images, y).predict_proba(fresh), again)
    with pytest.raises(InputError, match="not fitted"):
        PateFmClassifier(mechanism).predict(fresh)
