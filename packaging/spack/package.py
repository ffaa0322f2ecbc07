# Recipe for Spack: repos/builtin/packages/py_wattribute/package.py. `make recipes` fills in version and sha256.
from spack.package import *
from spack_repo.builtin.build_systems.python import PythonPackage


class PyWattribute(PythonPackage):
    """Energy and carbon of ranks, GPUs, kernels, functions, call paths and runs."""

    homepage = "https://github.com/wattribute/wattribute"
    pypi = "wattribute/wattribute-0.1.0.tar.gz"

    license("MIT")

    version("0.1.0", sha256="0000000000000000000000000000000000000000000000000000000000000000")

    variant("plot", default=True, description="Charts and reports")
    variant("dask", default=False, description="Attribution on a Dask cluster")

    depends_on("c", type="build")
    depends_on("py-setuptools@77:", type="build")

    depends_on("python@3.10:", type=("build", "run"))
    depends_on("py-numpy@1.24:", type=("build", "run"))
    depends_on("py-polars@1.33:", type=("build", "run"))
    depends_on("py-pyarrow@14:", type=("build", "run"))
    depends_on("py-rich@14.3:", type=("build", "run"))
    depends_on("py-rich-argparse@1.5:", type=("build", "run"))
    depends_on("py-shtab@1.7:", type=("build", "run"))
    depends_on("py-tomli@2:", type=("build", "run"), when="^python@:3.10")

    with when("+plot"):
        depends_on("py-altair@5.4:", type=("build", "run"))
        depends_on("py-pypdf@5:", type=("build", "run"))
        depends_on("py-vl-convert-python@1.6:", type=("build", "run"))

    with when("+dask"):
        depends_on("py-dask@2024.8:+distributed", type=("build", "run"))

    def setup_build_environment(self, env):
        env.set("WATTRIBUTE_REQUIRE_CORE", "1")

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def run_demo(self):
        with working_dir("spack-test", create=True):
            Executable(self.prefix.bin.wattribute)("demo")
