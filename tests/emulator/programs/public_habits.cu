// What public code does and manuals do not show: launches that a formatter has split, managed memory that
// must be zero, prefetches by device number, block sizes requested with a limit, promises to the optimiser, a
// hand-written timer, dependent launches, copies from symbols in a stream.
#include <cstdint>
#include <cstdio>

__global__ void count(int *sum, const int *in, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n) atomicAdd(sum, in[i]);
}

__device__ uint64_t globaltimer() {
	uint64_t t;
	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
	return t;
}

__device__ int last[2];
__global__ void note(int value, bool *ok) {
	__builtin_assume(value != 7);
	cudaGridDependencySynchronize();
	const uint64_t begin = globaltimer();
	last[1] = last[0] + value;
	last[0] = value;
	cudaTriggerProgrammaticLaunchCompletion();
	*ok = globaltimer() >= begin;
}

bool symbols_in_streams() {
	cudaStream_t stream;
	cudaStreamCreate(&stream);
	bool *ok;
	int from[2] = {5, 0}, to = 0;
	cudaMallocManaged(&ok, 1);
	cudaMemcpyToSymbolAsync(last, from, sizeof from, 0, cudaMemcpyHostToDevice, stream);
	cudaLaunchConfig_t config = {};
	config.gridDim = config.blockDim = dim3(1);
	config.stream = stream;
	cudaLaunchAttribute attribute[1];
	attribute[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
	attribute[0].val.programmaticStreamSerializationAllowed = 1;
	config.attrs = attribute;
	config.numAttrs = 1;
	cudaLaunchKernelEx(&config, note, 1, ok);
	int twenty = 20;
	void *arguments[] = {&twenty, &ok};
	cudaLaunchKernelExC(&config, (const void *)note, arguments);
	cudaMemcpyFromSymbolAsync(&to, last, sizeof to, sizeof to, cudaMemcpyDeviceToHost, stream);
	cudaStreamSynchronize(stream);
	if (to != 21 || !*ok) return false;

	cudaGraph_t graph;  // captured, it is a copy for each launch
	cudaGraphExec_t executable;
	cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
	note<<<1, 1, 0, stream>>>(4, ok);
	cudaMemcpyFromSymbolAsync(&to, last, sizeof to, sizeof to, cudaMemcpyDeviceToHost, stream);
	cudaStreamEndCapture(stream, &graph);
	if (to != 21) return false;
	cudaGraphInstantiate(&executable, graph, 0);
	cudaGraphLaunch(executable, stream);
	cudaStreamSynchronize(stream);
	if (to != 24) return false;
	cudaGraphLaunch(executable, stream);
	cudaStreamSynchronize(stream);
	return to == 8;
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
	ok = ok && symbols_in_streams();
	printf(ok ? "PASS\n" : "FAIL\n");
	return !ok;
}
