#!/usr/bin/env bash
# Installs the packages of the project on Debian 12 or Ubuntu 24.04. Prints nothing if all are installed.
#   install-deps.sh build    to build, package and run
#   install-deps.sh test     also to test: peers and oracles from Debian, and from PyPI into build/venv
#   install-deps.sh packages, install-deps.sh venv    the two parts of "test"
#   install-deps.sh models   for integ.deepbet, which is skipped without it: PyTorch from Debian, and deepbet
#                            from PyPI into build/models (130 MB to download, 1 GB on disk, 2 minutes)
# It does not install nvcc, which only the CUDA backend needs and which Debian's main section lacks: see docs/operations.md, "Install".
set -euo pipefail
cd "$(dirname "$0")/../.."

packages=(cmake ninja-build gcc g++ pkg-config sqlite3 dpkg-dev file
    libdcmtk-dev libopenjp2-7-dev libsqlite3-dev libuv1-dev libconfig-dev libre2-dev libseccomp-dev libsystemd-dev libpng-dev libyaml-dev
    libfreetype-dev fonts-dejavu-core
    libmicrohttpd-dev libssl-dev libcurl4-openssl-dev libxxhash-dev zlib1g-dev)
part=${1:-build}
[[ $part == venv ]] && packages=()
[[ $part == models ]] && packages=(python3-torch python3-venv)
[[ $part == test || $part == packages ]] && packages+=(bubblewrap check libboost-context-dev clang-format clang-tidy cppcheck dcm2niix dcmtk dicom3tools orthanc orthanc-dicomweb openssl
    chromium git groff-base iproute2 iptables mmdebstrap nginx-light podman runc man-db munge plastimatch prometheus python3 python3-dev python3-venv r-base-core rsync shellcheck
    slurm-client slurmctld slurmd strace systemd tzdata wrk zsh)

missing=()
for package in "${packages[@]}"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$' ||
        missing+=("$package")
done
if ((${#missing[@]})); then
    root=()
    ((EUID == 0)) || root=(sudo)
    echo "installing: ${missing[*]}"
    "${root[@]}" apt-get update -q
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -q -y --no-install-recommends "${missing[@]}"
    # Debian starts the services it installs. The tests start their own Orthanc, and need only promtool of Prometheus.
    for service in munge orthanc prometheus slurmctld slurmd; do
        if [[ " ${missing[*]} " == *" $service "* && -d /run/systemd/system ]]; then
            "${root[@]}" systemctl disable --quiet --now "$service"
        fi
    done
fi

# Installs packages from PyPI into the folder of a virtual environment.
pip_install() {
    "$1/bin/pip" install -qq --disable-pip-version-check --no-compile --no-deps --require-hashes "${@:2}"
}

# Debian's Python, pinned versions with hashes. The stamp is written last, so an interrupted set-up starts again.
if [[ $part == test || $part == venv ]]; then
    pins=(tests/requirements.txt tests/requirements-peers.txt tests/requirements-source.txt)
    older=tests/requirements-pydicom2.txt
    stamp=build/venv/pins
    if ! cat "${pins[@]}" $older | cmp -s - "$stamp"; then
        rm -rf build/venv
        /usr/bin/python3 -m venv build/venv
        pip_install build/venv --only-binary :all: -r tests/requirements.txt -r tests/requirements-peers.txt
        # The headers of Debian's NumPy, if it is installed, would come first.
        CFLAGS=-I$(build/venv/bin/python -c 'import numpy; print(numpy.get_include())') \
            pip_install build/venv --no-build-isolation --use-pep517 --no-cache-dir --no-binary :all: -r tests/requirements-source.txt
        pip_install build/venv --only-binary :all: --target build/venv/pydicom2 -r $older
        cat "${pins[@]}" $older >"$stamp"
    fi
    build/venv/bin/python tests/tools/check_venv.py "${pins[@]}"
    # The images, masks and published values of pyradiomics are in its source alone.
    if [[ ! -d build/venv/share/pyradiomics ]]; then
        sources=$(mktemp -d)
        build/venv/bin/pip download -qq --disable-pip-version-check --no-deps --no-build-isolation --no-cache-dir --no-binary :all: \
            --require-hashes -d "$sources" -r tests/requirements-source.txt
        mkdir "$sources/data"
        tar -xzf "$sources"/pyradiomics-*.tar.gz -C "$sources/data" --strip-components=2 --wildcards 'pyradiomics-*/data'
        mv "$sources/data" build/venv/share/pyradiomics
        rm -r "$sources"
    fi
fi

if [[ $part == models ]] && ! cmp -s tests/requirements-models.txt build/models/pins; then
    rm -rf build/models
    /usr/bin/python3 -m venv --system-site-packages build/models
    pip_install build/models --only-binary :all: -r tests/requirements-models.txt
    cp tests/requirements-models.txt build/models/pins
fi
