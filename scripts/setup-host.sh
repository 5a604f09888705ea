#!/usr/bin/env bash
# Installs the Debian packages that the tests can use. Needs root; run once per machine. Nothing here is needed to run
# the services themselves.
set -euo pipefail

packages=(
  nginx           # in front of the services, as the documents show it
  caddy           # the same
  sqlite3         # reads our store files with the engine's own shell
  zsh             # reads the lines that `router onboard` writes
  fish            # the same, in a language of its own
  chromium        # opens the pages
  chromium-driver # drives it, over WebDriver
  jq              # picks from answers in the guides
  runc            # sandboxes of trusted code
  runsc           # gVisor
  qemu-system-x86 # virtual machines
  busybox-static  # the tools inside a sandbox
  iproute2        # networks of their own for nodes
  gcc             # compiles the agent inside a sandbox
  libc6-dev       # which is linked statically
  lz4             # opens the kernel image
)

# Resolves the kernel that Debian's meta package stands for, takes the files a guest needs out of it, and writes down
# their digests; the image is built from files that match them, and from nothing else. The package itself is checked by
# apt. Nothing of it is installed on this machine.
guest_inputs() {
  local into="${WAYBILL_GUEST_INPUTS:-/var/lib/waybill/guest-inputs}" scratch kernel version
  if [ -f "$into/inputs.lock" ] && (cd "$into" && cut -d' ' -f1-3 inputs.lock | sha256sum --check --status); then
    return 0
  fi
  if [ "$(id -u)" -ne 0 ]; then
    echo "setup-host: run as root to unpack the guest's kernel into $into" >&2
    exit 1
  fi
  [ -n "$(find /var/lib/apt/lists -name '*Packages*' -print -quit)" ] || apt-get update -qq
  scratch="$(mktemp -d)"
  chmod 755 "$scratch"
  kernel="$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/^ *Depends: \(linux-image-[^ ]*\)$/\1/p' | head -1)"
  (cd "$scratch" && apt-get download -qq "$kernel" 2>/dev/null && dpkg -x ./*.deb tree)
  version="$(dpkg-deb -f "$scratch"/*.deb Version)"
  rm -rf "$into"
  mkdir -p "$into"
  cp "$scratch"/tree/boot/vmlinuz-* "$into/vmlinuz"
  for module in virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_console; do
    find "$scratch/tree" -name "$module.ko" -exec cp {} "$into/" \;
  done
  cp "$(command -v busybox)" "$into/busybox"
  (
    cd "$into"
    sha256sum -- *.ko vmlinuz | sed "s|\$| $kernel $version|"
    sha256sum busybox | sed "s|\$| busybox-static $(dpkg-query -W -f='${Version}' busybox-static)|"
  ) >"$scratch/inputs.lock"
  mv "$scratch/inputs.lock" "$into/inputs.lock"
  rm -rf "$scratch"
  echo "setup-host: unpacked $kernel $version into $into"
}

# The packages of the interpreters that a guest may have, as apt resolves them for a machine that has nothing. They are
# unpacked into an image and never installed anywhere, and their digests are written down as those of the kernel are.
guest_interpreters() {
  local into="${WAYBILL_GUEST_INPUTS:-/var/lib/waybill/guest-inputs}" scratch
  if grep -qs ' python3-pip-whl ' "$into/interpreters.lock" && (cd "$into" && cut -d' ' -f1-3 interpreters.lock | sha256sum --check --status); then
    return 0
  fi
  scratch="$(mktemp -d)"
  chmod 777 "$scratch"
  (
    cd "$scratch"
    apt-get -qq -o Dir::State::status=/dev/null -o Debug::NoLocking=1 --no-install-recommends --print-uris \
      install python3 python3-pip-whl nodejs ca-certificates |
      sed -n "s/^'[^']*' \([^_ ]*\)_\([^_ ]*\)_[^ ]* .*/\1=\2/p" | sed 's/%3a/:/g' |
      grep -Ev '^(dpkg|tar|debconf|openssl|libmd0|libacl1|libselinux1|libpcre2-8-0|readline-common|libtirpc-common)=' |
      xargs apt-get download -qq
    for package in *.deb; do
      sha256sum "$package" |
        sed "s|  |  debs/|; s|\$| $(dpkg-deb -f "$package" Package) $(dpkg-deb -f "$package" Version)|"
    done >interpreters.lock
  )
  rm -rf "$into/debs"
  mkdir -p "$into/debs"
  mv "$scratch"/*.deb "$into/debs/"
  mv "$scratch/interpreters.lock" "$into/interpreters.lock"
  rm -rf "$scratch"
  echo "setup-host: fetched the packages of the interpreters into $into/debs"
}

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ "${#missing[@]}" -eq 0 ]; then
  guest_inputs
  guest_interpreters
  echo 'setup-host: everything is installed'
  exit 0
fi
if [ "$(id -u)" -ne 0 ]; then
  echo "setup-host: run as root to install: ${missing[*]}" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
echo "setup-host: installed ${missing[*]}"
guest_inputs
guest_interpreters
