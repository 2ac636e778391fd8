// What public code does and manuals do not show: launches that a formatter took apart, managed memory that is counted on to be
// zero, prefetches by device number, block sizes asked for with a limit.
#include <cstdio>

__global__ void count(int *sum, const int *in, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n) atomicAdd(sum, in[i]);
}

int main() {
	const int n = 1000;
	int *sum, *in, id = 0, grid = 0, block = 0;
	cudaMallocManaged(&sum, sizeof(int));
	cudaMallocManaged(&in, n * sizeof(int));
	for (int i = 0; i < n; i++) in[i] = 2;
	cudaGetDevice(&id);
	cudaMemAdvise(in, n * sizeof(int), cudaMemAdviseSetReadMostly, id);
	cudaMemPrefetchAsync(in, n * sizeof(int), id);
	cudaOccupancyMaxPotentialBlockSize(&grid, &block, count, 0, 1000000);
	bool ok = block > 0 && block <= 1024 && grid > 0;
	count << <(n + 255) / 256, 256 >> > (sum, in, n);
	ok = ok && cudaDeviceSynchronize() == cudaSuccess && *sum == 2 * n;
	printf(ok ? "PASS\n" : "FAIL\n");
	return !ok;
}
