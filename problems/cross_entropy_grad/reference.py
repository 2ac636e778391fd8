"""Cross-entropy loss of bf16 logits and its gradient: the specification, as PyTorch runs it eagerly."""

import torch
import torch.nn as nn

rows = 4096
vocab = 32000


def classes_of(target, vocab):
    """The targets, -100 where one is not a class."""
    return torch.where((target >= 0) & (target < vocab), target, -100)


class Model(nn.Module):
    """softmax(logits) - onehot(target), which takes the place of the logits, and
    logsumexp(logits) - logits[target]; both are 0 where the target is not a class."""

    def forward(self, logits, target):
        wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
        chosen = classes_of(target, logits.shape[1]).long()
        counts = (chosen >= 0)[:, None]
        place = chosen.clamp(min=0)[:, None]
        lse = torch.logsumexp(wide, dim=1, keepdim=True)
        loss = torch.where(counts, lse - wide.gather(1, place), 0.0)[:, 0]
        gradient = torch.exp(wide - lse)
        gradient = gradient.scatter_add(1, place, torch.full_like(lse, -1.0))
        return torch.where(counts, gradient, 0.0).to(logits.dtype), loss


class Library_liger(nn.Module):
    """Liger's Triton kernel, launched as its own wrapper does, without the wrapper's checks, which wait for
    the GPU. It reads each row twice, writes the gradient over the logits and rounds the loss to bf16."""

    @staticmethod
    def library():
        import importlib.metadata

        import liger_kernel.ops.cross_entropy

        return f"Liger {importlib.metadata.version('liger_kernel')}, loss in bf16"

    def forward(self, logits, target):
        from liger_kernel.ops.cross_entropy import MAX_FUSED_SIZE, liger_cross_entropy_kernel
        import triton

        rows_, columns = logits.shape
        chosen = classes_of(target, columns)
        loss = torch.empty(rows_, dtype=logits.dtype, device=logits.device)
        liger_cross_entropy_kernel[(rows_,)](
            X_ptr=logits, X_stride=logits.stride(0), Y_ptr=chosen, Y_stride=1, weight_ptr=None, loss_ptr=loss,
            z_loss_ptr=None, loss_stride=1, token_accuracy_ptr=None, token_accuracy_stride=0,
            predicted_tokens_ptr=None, predicted_tokens_stride=0, n_cols=columns, n_non_ignore=rows_,
            sum_non_ignore_weight=rows_, ignore_index=-100, weight_sum=0.0, lse_square_scale=0.0,
            label_smoothing=0.0, reduction="none", softcap=None, RETURN_Z_LOSS=False,
            RETURN_TOKEN_ACCURACY=False, RETURN_PREDICTED_TOKENS=False,
            BLOCK_SIZE=min(MAX_FUSED_SIZE, triton.next_power_of_2(columns)), HAS_WEIGHT=False,
            HAS_SOFTCAPPING=False, HAS_GRADIENTS=True, num_warps=32)
        return logits, loss.float()


class Library_quack(nn.Module):
    """QuACK's forward pass with the gradient in place: a row in the shared memory of a cluster, CuTe-DSL."""

    @staticmethod
    def library():
        import importlib.metadata

        import quack.cross_entropy

        return f"QuACK {importlib.metadata.version('quack_kernels')}"

    def forward(self, logits, target):
        from quack.cross_entropy import cross_entropy_fwd

        loss, gradient = cross_entropy_fwd(
            logits, classes_of(target, logits.shape[1]), return_dx=True, inplace_backward=True)
        return gradient, loss


def get_inputs():
    target = torch.randint(0, vocab, (rows,), dtype=torch.int32)
    return [torch.randn(rows, vocab, dtype=torch.bfloat16), target]


def get_init_inputs():
    return []
