"""The training loop: seeds, checkpoints, networks, losses, at sizes of seconds."""

import math

import numpy as np
import pytest
import torch

from bystander._validate import InputError
from bystander.mechanisms import Alibi, RandomizedResponse
from bystander.training import (
    AlibiLoss,
    CrossEntropy,
    ForwardLoss,
    Recipe,
    Strong,
    TorchClassifier,
    Views,
    Weak,
    mlp,
    resnet18,
    small_cnn,
    wide_resnet,
)
from bystander.training.recipe import half


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def pictures(n=64, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(0, 3, n)
    images = random.integers(0, 80, (n, 9, 9, 3), dtype=np.uint8)
    images[np.arange(n), :, :, y] += 120
    return images, y


def weights(model):
    return torch.cat([value.flatten().float() for value in model.net_.state_dict().values()])


SMALL = {"network": small_cnn((8, 8, 8)), "epochs": 4, "batch": 16, "rate": 0.1, "augment": Weak(shift=1), "classes": 3}


def test_the_same_seed_gives_the_same_weights_and_another_seed_others():
    x, y = pictures()
    before = torch.random.get_rng_state()
    one, two, other = (TorchClassifier(**SMALL, seed=seed, mixup=0.2).fit(x, y) for seed in (1, 1, 2))
    assert torch.equal(weights(one), weights(two))
    assert not torch.equal(weights(one), weights(other))
    assert torch.equal(before, torch.random.get_rng_state())


class StopError(Exception):
    pass


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_an_interrupted_training_resumes_to_the_same_bits(tmp_path, optimizer):
    x, y = pictures()
    given = {**SMALL, "seed": 3, "optimizer": optimizer, "rate": 0.01}
    whole = TorchClassifier(**given).fit(x, y)

    def stop(done, epochs, loss):
        if done == 2:
            raise StopError

    with pytest.raises(StopError):
        TorchClassifier(**given, checkpoint=tmp_path / "c.pt", progress=stop).fit(x, y)
    told = []
    resumed = TorchClassifier(
        **given, checkpoint=tmp_path / "c.pt", progress=lambda done, epochs, loss: told.append((done, epochs))
    ).fit(x, y)
    assert told == [(3, 4), (4, 4)]
    assert torch.equal(weights(whole), weights(resumed))
    assert [path.name for path in tmp_path.iterdir()] == ["c.pt"]


def test_a_checkpoint_of_another_training_is_refused(tmp_path):
    x, y = pictures()
    at = tmp_path / "c.pt"
    TorchClassifier(**{**SMALL, "epochs": 1}, seed=3, checkpoint=at).fit(x, y)
    with pytest.raises(InputError, match="checkpoint of another training"):
        TorchClassifier(**{**SMALL, "epochs": 1}, seed=4, checkpoint=at).fit(x, y)
    with pytest.raises(InputError, match="checkpoint of another training"):
        TorchClassifier(**{**SMALL, "epochs": 1}, seed=3, checkpoint=at).fit(x, y[::-1])
    with pytest.raises(InputError, match="checkpoint of another training"):
        TorchClassifier(**{**SMALL, "epochs": 1}, seed=3, checkpoint=at).fit(x[::-1], y)  # the same shape
    with pytest.raises(InputError, match="seed is None"):
        TorchClassifier(**SMALL, checkpoint=at).fit(x, y)
    at.write_bytes(b"nothing")
    with pytest.raises(InputError, match="no checkpoint that can be read"):
        TorchClassifier(**{**SMALL, "epochs": 1}, seed=3, checkpoint=at).fit(x, y)


def test_it_learns_images_tables_and_sparse_tables():
    import scipy.sparse

    x, y = pictures(200)
    net = TorchClassifier(**{**SMALL, "epochs": 8}, mirror=True, seed=0).fit(x[:150], y[:150])
    assert (net.predict(x[150:]) == y[150:]).mean() > 0.95
    table = x.mean(axis=(1, 2)) / 255
    settings = {"network": mlp((16,)), "epochs": 30, "batch": 25, "rate": 0.1, "precision": "fp32", "seed": 0}
    dense = TorchClassifier(**settings).fit(table[:150], y[:150])
    assert (dense.predict(table[150:]) == y[150:]).mean() > 0.95
    sparse = TorchClassifier(**settings).fit(scipy.sparse.csr_matrix(table[:150]), y[:150])
    np.testing.assert_allclose(sparse.predict_proba(table[150:]), dense.predict_proba(table[150:]), atol=1e-5)


def test_bf16_and_channels_last_are_what_it_computes_in():
    x, y = pictures(200)
    net = TorchClassifier(**{**SMALL, "epochs": 8}, precision="bf16", seed=0).fit(x[:150], y[:150])
    assert (net.predict(x[150:]) == y[150:]).mean() > 0.9
    convolution, seen = net.net_.body[1], []
    convolution.register_forward_hook(lambda module, given, out: seen.append((given[0], out)))
    net.predict_proba(x[:3])
    (given, out), last = seen[0], {"memory_format": torch.channels_last}
    assert out.dtype == torch.bfloat16
    assert convolution.weight.dtype == torch.float32  # what the optimizer moves
    assert all(held.is_contiguous(**last) for held in (convolution.weight, given, out))
    assert [half(precision, torch.device("cpu")) for precision in ("bf16", "fp32")] == [True, False]


def test_labels_keep_their_names_where_classes_are_not_fixed():
    x = np.array([[0.0], [0.1], [0.9], [1.0]] * 10)
    y = np.array(["no", "no", "yes", "yes"] * 10)
    net = TorchClassifier(mlp(()), epochs=40, batch=8, rate=1.0, precision="fp32", seed=0).fit(x, y)
    assert net.predict(x[:4]).tolist() == ["no", "no", "yes", "yes"]


@pytest.mark.parametrize(
    ("network", "size"),
    [(small_cnn((4, 6, 8)), 8), (resnet18(4), 32), (wide_resnet(10, 1), 64)],
)
def test_networks_give_logits_of_their_features(network, size):
    net = network.build((3, 32, 32), 5).eval()
    x = torch.randn(2, 3, 32, 32)
    assert net.features(x).shape == (2, size)
    torch.testing.assert_close(net(x), net.head(net.features(x)))


def test_known_numbers_of_weights():
    def count(network, shape, classes=10):
        return sum(weight.numel() for weight in network.build(shape, classes).parameters())

    assert count(resnet18(), (3, 32, 32)) == 11_173_962
    assert count(wide_resnet(28, 2), (3, 32, 32)) == 1_467_610
    assert count(mlp((128, 32)), (100,), 2) == 100 * 128 + 128 + 128 * 32 + 32 + 32 * 2 + 2


def test_whitening_makes_patches_uncorrelated():
    net = small_cnn((4, 4, 4)).build((3, 16, 16), 3)
    x = torch.randn(200, 3, 16, 16).cumsum(2).cumsum(3)
    net.prepare(x)
    flat = (net.first(x) - net.first.bias[:, None, None])[:, :12].permute(1, 0, 2, 3).flatten(1)
    second = (flat @ flat.T / flat.shape[1]).detach()
    torch.testing.assert_close(second, torch.eye(12), atol=0.02, rtol=0)
    assert not net.first.weight.requires_grad


def test_losses_equal_their_closed_forms():
    logits = torch.tensor([[2.0, 0.0, -1.0], [0.0, 1.0, 0.5]], requires_grad=True)
    p = torch.softmax(logits.detach(), 1).double()
    y = torch.tensor([0, 2])
    assert CrossEntropy()(logits, y, 0).item() == pytest.approx(-(p[0, 0].log() + p[1, 2].log()).item() / 2)

    rr = RandomizedResponse(epsilon=1, classes=3)
    channel = torch.tensor(rr.channel())
    forward = ForwardLoss(tuple(map(tuple, rr.channel())))
    seen = p @ channel
    assert forward(logits, y, 0).item() == pytest.approx(-(seen[0, 0].log() + seen[1, 2].log()).item() / 2)
    assert forward(logits, torch.eye(3)[y], 0).item() == pytest.approx(forward(logits, y, 0).item())

    alibi = Alibi(epsilon=2, classes=3)
    release = alibi.randomize(y.numpy(), rng=np.random.default_rng(0))
    loss, released = AlibiLoss.of(alibi, warmup=1), torch.tensor(release.output)
    flat = alibi.posterior(release)
    np.testing.assert_allclose(loss.posterior(logits, released, 0).detach(), flat, atol=1e-6)
    informed = alibi.posterior(release, p.numpy())
    np.testing.assert_allclose(loss.posterior(logits, released, 1).detach(), informed, atol=1e-6)
    value = loss(logits, released, 1)
    assert value.item() == pytest.approx(-(torch.tensor(informed) * p.log()).sum(1).mean().item(), abs=1e-6)
    value.backward()  # the posterior is detached: the gradient is softmax − posterior
    np.testing.assert_allclose(logits.grad, (p.numpy() - informed) / 2, atol=1e-6)


def test_the_forward_loss_is_least_at_the_truth():
    rr = RandomizedResponse(epsilon=1, classes=2)
    x = np.repeat([[0.0], [1.0]], 400, axis=0)
    truth = np.array([[0.9, 0.1], [0.2, 0.8]])
    seen = np.repeat(truth @ rr.channel(), 400, axis=0)
    loss = ForwardLoss(tuple(map(tuple, rr.channel())))
    given = {"epochs": 200, "batch": 800, "rate": 2.0, "decay": 0.0, "precision": "fp32", "seed": 0}
    net = TorchClassifier(mlp(()), **given, loss=loss).fit(x, seen)
    np.testing.assert_allclose(net.predict_proba([[0.0], [1.0]]), truth, atol=0.02)


def test_schedules():
    triangle = Recipe(rate=0.4, warmup=0.25)
    assert [triangle.at(t) for t in (0.125, 0.25, 0.625, 1.0)] == pytest.approx([0.2, 0.4, 0.2, 0.0])
    cosine = Recipe(rate=0.4, warmup=0.2, schedule="cosine")
    assert cosine.at(0.6) == pytest.approx(0.4 * (0.5 - 0.5 * math.cos(math.pi * 0.5)))
    drops = Recipe(rate=1.0, schedule="drops")
    assert [drops.at(t) for t in (0.0, 0.3, 0.6, 0.9)] == pytest.approx([1, 0.2, 0.04, 0.008])


def test_weak_augmentation_mirrors_and_shifts_and_nothing_else():
    image = np.arange(8 * 8 * 3, dtype=np.uint8).reshape(1, 8, 8, 3)
    coins = torch.Generator().manual_seed(0)
    x = torch.from_numpy(image)
    out = Weak(shift=2)(x, torch.zeros(300, dtype=torch.int64), coins)
    padded = np.pad(image[0], ((2, 2), (2, 2), (0, 0)), mode="reflect").astype(np.float32) * 4 / 255 - 2
    shifted = {
        (padded[i : i + 8, j : j + 8][:, ::turn].transpose(2, 0, 1)).astype(np.float32).round(4).tobytes()
        for i in range(5)
        for j in range(5)
        for turn in (1, -1)
    }
    assert {row.round(decimals=4).contiguous().numpy().tobytes() for row in out} == shifted


@pytest.mark.parametrize("how", [Strong(cutout=4), Views()])
def test_strong_views_stay_within_the_range_and_follow_their_seed(how):
    images = torch.from_numpy(pictures(16)[0])
    chosen = torch.arange(16)
    one, two = (how(images, chosen, torch.Generator().manual_seed(5)) for _ in range(2))
    assert one.shape == (16, 3, 9, 9)
    assert torch.equal(one, two)
    assert one.abs().max() <= 2 + 1e-4
    assert not torch.equal(one, how(images, chosen, torch.Generator().manual_seed(6)))


def test_bad_input_is_told_in_one_line():
    x, y = pictures(16)
    with pytest.raises(InputError, match="row 1 has a value that is missing"):
        TorchClassifier(mlp()).fit([[1.0], [math.nan]], [0, 1])
    with pytest.raises(InputError, match="give one target a row"):
        TorchClassifier(**SMALL).fit(x, y[:-1])
    with pytest.raises(InputError, match="y has the label 7"):
        TorchClassifier(**SMALL).fit(x, [7] * 16)
    with pytest.raises(InputError, match="network is mlp, which takes a table"):
        TorchClassifier(mlp()).fit(x, y)
    with pytest.raises(InputError, match="takes them from 9 × 9"):
        TorchClassifier(**SMALL).fit(x[:, :8], y)
    with pytest.raises(InputError, match="loss is nan"):
        TorchClassifier(mlp(), epochs=3, rate=1e5, batch=4, seed=0).fit(np.full((16, 2), 1e30), y % 2)
