# Rung 6: CuTe-DSL: the loop of rung 5 in Python.
#
# Changed     the language, not the kernel: the same layouts, ring of stages, roles of warps and pieces of the
#             results. The pipeline's barriers are an object of the library.
# Why         C++ templates take half a minute to compile; the same types, as values of Python, take a second.
# Prediction  1.0 of rung 5 on the GPU: the instructions are the same. The launch costs the host more.
# Came        1.38 ms at 8192 cubed on an H100, 797 TFLOP/s: 1.003 of cuBLAS; 0.995 at 4096 cubed.
#
# Shapes      a [m, k], b [k, n], c [m, n], bf16, row-major; one compiled kernel for all sizes.
# Launch      as many blocks as multiprocessors, or tiles where these are fewer; 384 threads: a producer and
#             two groups of 128 that multiply 64 x 256 each.
# Resources   232 registers a thread that multiplies, 40 a producer; 225 KiB of shared memory: 4 stages of
#             48 KiB, two pieces of 16 KiB of the results.
# Cost        2 m n k FLOPs.
# Divides     k % 8 == 0 and n % 8 == 0 (the problem says so): rows start on 16 bytes, and TMA can fetch
#             them. It fills with zeros what lies outside, and stores nothing there.
# Source      the building blocks are those of the documentation of CuTe-DSL (nvidia-cutlass-dsl 4.3.5). Needs
#             sm_90a.
import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.pipeline as pipeline
import cutlass.utils.hopper_helpers as hopper
import torch
from cutlass.cute.nvgpu import cpasync, warp, warpgroup
from cutlass.cute.runtime import make_ptr
from cutlass.utils import LayoutEnum, SmemAllocator

ROWS, COLUMNS, DEPTH, STAGES = 128, 256, 64, 4
PIECE = 64  # columns of the results, on their way to c
PIECES = COLUMNS // PIECE
CONSUMERS, THREADS = 256, 384
BAND = 16
NUMBER = cutlass.BFloat16


@cute.jit
def place_of(tile: cutlass.Int32, rows: cutlass.Int32, columns: cutlass.Int32):
    """Tiles come in bands of rows; within a band, all of a tile column before the next one."""
    band, within = tile // (BAND * columns), tile % (BAND * columns)
    height = cutlass.min(rows - band * BAND, BAND)
    return band * BAND + within % height, within // height


@cute.jit
def multiply_step(multiply: cute.TiledMma, sums: cute.Tensor, a: cute.Tensor, b: cute.Tensor):
    """Starts the products of one stage; those of the stage before are done afterwards."""
    warpgroup.fence()
    for i in cutlass.range_constexpr(cute.size(a, mode=[2])):
        cute.gemm(multiply, sums, a[None, None, i], b[None, None, i], sums)
    warpgroup.commit_group()
    warpgroup.wait_group(1)


@cute.kernel
def product_of_tiles(load_a: cute.CopyAtom, a: cute.Tensor, load_b: cute.CopyAtom, b: cute.Tensor,
                     store_c: cute.CopyAtom, c: cute.Tensor, multiply: cute.TiledMma,
                     multiply_piece: cute.TiledMma, layout_a: cute.ComposedLayout,
                     layout_b: cute.ComposedLayout, layout_c: cute.ComposedLayout):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    blocks, _, _ = cute.arch.grid_dim()
    warp_index = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    memory = SmemAllocator()
    shared_a, shared_b, shared_c = [
        memory.allocate_tensor(NUMBER, layout.outer, byte_alignment=1024, swizzle=layout.inner)
        for layout in (layout_a, layout_b, layout_c)]
    ring = pipeline.PipelineTmaAsync.create(
        barrier_storage=memory.allocate_array(cutlass.Int64, 2 * STAGES), num_stages=STAGES,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, CONSUMERS // 32),
        tx_count=(ROWS + COLUMNS) * DEPTH * NUMBER.width // 8)

    # Tensors of coordinates, in tiles: (inside a tile, inside a tile, tile, tile).
    tiles_a = cute.local_tile(a, (ROWS, DEPTH), (None, None))
    tiles_b = cute.local_tile(b, (COLUMNS, DEPTH), (None, None))
    tiles_c = cute.local_tile(c, (ROWS, PIECE), (None, None))
    rows, columns = cute.size(tiles_a, mode=[2]), cute.size(tiles_b, mode=[2])
    steps = cute.size(tiles_a, mode=[3])
    one = cute.make_layout(1)
    to_a, from_a = cpasync.tma_partition(load_a, 0, one, cute.group_modes(shared_a, 0, 2),
                                         cute.group_modes(tiles_a, 0, 2))
    to_b, from_b = cpasync.tma_partition(load_b, 0, one, cute.group_modes(shared_b, 0, 2),
                                         cute.group_modes(tiles_b, 0, 2))
    from_c, to_c = cpasync.tma_partition(store_c, 0, one, cute.group_modes(shared_c, 0, 2),
                                         cute.group_modes(tiles_c, 0, 2))

    if warp_index >= CONSUMERS // 32:
        cute.arch.warpgroup_reg_dealloc(40)
        if warp_index == CONSUMERS // 32:  # the producer
            at = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, STAGES)
            for tile in cutlass.range(block, rows * columns, blocks):
                row, column = place_of(tile, rows, columns)
                for step in cutlass.range(steps):
                    ring.producer_acquire(at)
                    full = ring.producer_get_barrier(at)
                    cute.copy(load_a, from_a[None, row, step], to_a[None, at.index], tma_bar_ptr=full)
                    cute.copy(load_b, from_b[None, column, step], to_b[None, at.index], tma_bar_ptr=full)
                    at.advance()
    else:
        cute.arch.warpgroup_reg_alloc(232)
        mine = multiply.get_slice(thread)
        part_a = multiply.make_fragment_A(mine.partition_A(shared_a))
        part_b = multiply.make_fragment_B(mine.partition_B(shared_b))
        sums = cute.make_rmem_tensor(multiply.partition_shape_C((ROWS, COLUMNS)), cutlass.Float32)
        piece_layout = cute.make_layout(multiply_piece.partition_shape_C((ROWS, PIECE)))
        to_shared = cute.make_tiled_copy_C(
            cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 4), NUMBER), multiply_piece)
        copier = to_shared.get_slice(thread)
        piece_to = copier.partition_D(shared_c)
        meeting = pipeline.NamedBarrier(barrier_id=1, num_threads=CONSUMERS)
        multiply.set(warpgroup.Field.ACCUMULATE, True)
        at = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, STAGES)
        for tile in cutlass.range(block, rows * columns, blocks):
            row, column = place_of(tile, rows, columns)
            sums.fill(0.0)
            ring.consumer_wait(at)
            multiply_step(multiply, sums, part_a[None, None, None, at.index],
                          part_b[None, None, None, at.index])
            before = at.clone()
            at.advance()
            for step in cutlass.range(1, steps):
                ring.consumer_wait(at)
                multiply_step(multiply, sums, part_a[None, None, None, at.index],
                              part_b[None, None, None, at.index])
                ring.consumer_release(before)
                before.advance()
                at.advance()
            warpgroup.wait_group(0)
            ring.consumer_release(before)

            for piece in cutlass.range_constexpr(PIECES):
                part = cute.make_tensor(sums.iterator + piece * cute.size(piece_layout), piece_layout)
                rounded = cute.make_rmem_tensor(piece_layout, NUMBER)
                rounded.store(part.load().to(NUMBER))
                if warp_index == 0:
                    cute.arch.cp_async_bulk_wait_group(1, read=True)  # the piece before the last has left
                meeting.arrive_and_wait()
                cute.copy(to_shared, copier.retile(rounded), piece_to[None, None, None, piece % 2])
                cute.arch.fence_proxy(cute.arch.ProxyKind.async_shared,
                                      space=cute.arch.SharedSpace.shared_cta)
                meeting.arrive_and_wait()
                if warp_index == 0:
                    cute.copy(store_c, from_c[None, piece % 2], to_c[None, row, column * PIECES + piece])
                    cute.arch.cp_async_bulk_commit_group()
        if warp_index == 0:
            cute.arch.cp_async_bulk_wait_group(0, read=True)


@cute.jit
def product(a: cute.Pointer, b: cute.Pointer, c: cute.Pointer, m: cutlass.Int32, n: cutlass.Int32,
            k: cutlass.Int32, multiprocessors: cutlass.Int32, stream: cuda.CUstream):
    n, k = cute.assume(n, divby=8), cute.assume(k, divby=8)
    # CuTe's b is [n, k]: the same numbers, with the strides the other way around.
    a = cute.make_tensor(a, cute.make_layout((m, k), stride=(k, 1)))
    b = cute.make_tensor(b, cute.make_layout((n, k), stride=(1, n)))
    c = cute.make_tensor(c, cute.make_layout((m, n), stride=(n, 1)))
    tile = ROWS, COLUMNS, DEPTH
    layout_a = hopper.make_smem_layout_a(LayoutEnum.ROW_MAJOR, tile, NUMBER, STAGES)
    layout_b = hopper.make_smem_layout_b(LayoutEnum.COL_MAJOR, tile, NUMBER, STAGES)
    layout_c = hopper.make_smem_layout_epi(NUMBER, LayoutEnum.ROW_MAJOR, (ROWS, PIECE), 2)
    # Two warp groups, one above the other; and a product as narrow as a piece, whose threads hold what those
    # of the first hold of a piece.
    multiply, multiply_piece = [
        hopper.make_trivial_tiled_mma(NUMBER, NUMBER, warpgroup.OperandMajorMode.K,
                                      warpgroup.OperandMajorMode.MN, cutlass.Float32, (2, 1, 1), (64, width))
        for width in (COLUMNS, PIECE)]
    first = (None, None, 0)
    load_a, at_a = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), a,
                                               cute.slice_(layout_a, first), (ROWS, DEPTH))
    load_b, at_b = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), b,
                                               cute.slice_(layout_b, first), (COLUMNS, DEPTH))
    store_c, at_c = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), c,
                                                cute.slice_(layout_c, first), (ROWS, PIECE))
    tiles = cute.ceil_div(m, ROWS) * cute.ceil_div(n, COLUMNS)
    product_of_tiles(load_a, at_a, load_b, at_b, store_c, at_c, multiply, multiply_piece, layout_a, layout_b,
                     layout_c).launch(grid=(cutlass.min(tiles, multiprocessors), 1, 1),
                                      block=(THREADS, 1, 1), stream=stream)


def pointer(tensor):
    return make_ptr(NUMBER, tensor.data_ptr(), cute.AddressSpace.gmem, assumed_align=16)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.multiprocessors = torch.cuda.get_device_properties(0).multi_processor_count
        self.kernel = None

    def forward(self, a, b):
        (m, k), n = a.shape, b.shape[1]
        c = torch.empty((m, n), device=a.device, dtype=a.dtype)
        arguments = (pointer(a), pointer(b), pointer(c), m, n, k, self.multiprocessors,
                     cuda.CUstream(torch.cuda.current_stream().cuda_stream))
        if self.kernel is None:
            self.kernel = cute.compile(product, *arguments)
        self.kernel(*arguments)
        return c
