#!/usr/bin/env bash
# Installs what the project needs on Debian or Ubuntu; says nothing and does nothing where it is all there.
#   install-deps.sh build    to build, package and run
#   install-deps.sh test     also to test: peers and oracles from Debian, and from PyPI into build/venv
# Not nvcc, which only the CUDA backend needs and which is not in Debian's main section: see the README.
set -euo pipefail
cd "$(dirname "$0")/../.."

packages=(cmake ninja-build gcc g++ pkg-config sqlite3 dpkg-dev file
    libdcmtk-dev libopenjp2-7-dev libsqlite3-dev libuv1-dev libconfig-dev libseccomp-dev libsystemd-dev libpng-dev
    libmicrohttpd-dev libssl-dev libcurl4-openssl-dev zlib1g-dev check libboost-context-dev)
[[ ${1:-build} == test ]] && packages+=(clang-format clang-tidy cppcheck dcm2niix dcmtk dicom3tools orthanc orthanc-dicomweb openssl
    chromium git groff-base iproute2 iptables mmdebstrap podman runc man-db munge prometheus python3 python3-dev python3-venv r-base-core rsync shellcheck
    slurm-client slurmctld slurmd strace systemd tzdata zsh)

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
    # Debian starts what it installs; the tests start an Orthanc of their own, and need of Prometheus promtool alone.
    for service in munge orthanc prometheus slurmctld slurmd; do
        if [[ " ${missing[*]} " == *" $service "* && -d /run/systemd/system ]]; then
            "${root[@]}" systemctl disable --quiet --now "$service"
        fi
    done
fi

if [[ ${1:-build} == test ]]; then
    stamp=build/venv/requirements.txt
    if ! cat tests/requirements.txt tests/requirements-source.txt | cmp -s - "$stamp"; then
        rm -rf build/venv
        python3 -m venv build/venv
        build/venv/bin/pip install --quiet --disable-pip-version-check -r tests/requirements.txt
        build/venv/bin/pip install --quiet --disable-pip-version-check --no-build-isolation \
            -r tests/requirements-source.txt
        cat tests/requirements.txt tests/requirements-source.txt >"$stamp"
    fi
fi
