"""The optional compiled kernels; everything else is in pyproject.toml.

These modules are Cython in pure-Python mode: without a C compiler the same files run interpreted.
"""

from setuptools import Extension, setup

KERNELS = {
    "kraftline.records._kernel": "src/kraftline/records/_kernel.py",
    "kraftline.records._typed": "src/kraftline/records/_typed.py",
    "kraftline.schema._wire": "src/kraftline/schema/_wire.py",
    "kraftline.storage.cleaner._kernel": "src/kraftline/storage/cleaner/_kernel.py",
}

try:
    from Cython.Build import cythonize
except ImportError:
    extensions = []
else:
    extensions = cythonize(
        [Extension(name, [path], extra_compile_args=["-O3"]) for name, path in KERNELS.items()],
        build_dir="build/cython",
        compiler_directives={
            "language_level": 3,
            "boundscheck": False,
            "wraparound": False,
            "cdivision": True,
            "initializedcheck": False,
        },
        quiet=True,
    )
    for extension in extensions:  # cythonize makes new ones, and forgets this
        extension.optional = True

setup(ext_modules=extensions)
