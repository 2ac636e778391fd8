"""What a label says of the languages of a candidate (harness/runtime/python/worker/worker.py)."""

import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "harness/runtime/python/worker"))
import worker  # noqa: E402


class Languages(unittest.TestCase):
    def test_cute_dsl_has_the_version_of_its_wheel(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "cutlass.py").touch()
            (folder / "nvidia_cutlass_dsl-9.8.7.dist-info").mkdir()
            (folder / "nvidia_cutlass_dsl-9.8.7.dist-info/METADATA").write_text(
                "Metadata-Version: 2.1\nName: nvidia-cutlass-dsl\nVersion: 9.8.7\n")
            source = folder / "kernel.py"
            source.write_text("import cutlass.cute as cute\nimport triton\n")
            sys.path.insert(0, name)
            try:
                __import__("cutlass")
                found = worker.languages_of(str(source))
            finally:
                sys.path.remove(name)
                sys.modules.pop("cutlass", None)
        self.assertIn("CuTe-DSL 9.8.7", found)
        self.assertTrue(found[0].startswith("Triton"), found)


if __name__ == "__main__":
    unittest.main()
