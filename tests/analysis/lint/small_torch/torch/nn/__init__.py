class Module:
    def double(self):
        return self

    def __call__(self, *inputs):
        return self.forward(*inputs)


def Parameter(tensor):
    return tensor
