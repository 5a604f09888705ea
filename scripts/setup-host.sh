#!/usr/bin/env bash
# Installs the Debian packages that the tests can use. Needs root; run once per machine. Nothing here is needed to run
# the services themselves.
set -euo pipefail

packages=(
  nginx           # in front of the services, as the documents show it
  caddy           # the same
  prometheus      # its promtool reads the alerts and the pages of metrics
  sqlite3         # reads our store files with the engine's own shell
  zsh             # reads the lines that `router onboard` writes
  fish            # the same, in a language of its own
  chromium        # opens the pages
  chromium-driver # drives it, over WebDriver
  firefox-esr     # opens them as well
  chromium-headless-shell # what an agent browses with in a machine
  jq              # picks from answers in the guides
  podman          # builds and starts the images of docs/deploy
  debootstrap     # the base image that they are tested on
  runc            # sandboxes of trusted code
  runsc           # gVisor
  containerd      # what Kata is started by
  qemu-system-x86 # virtual machines
  busybox-static  # the tools inside a sandbox
  iproute2        # networks of their own for nodes
  gcc             # compiles the agent inside a sandbox
  libc6-dev       # which is linked statically
  lz4             # opens the kernel image
  python3-cryptography # the verifier of docs/examples
)

# Resolves the kernel that Debian's meta package stands for, takes the files a guest needs out of it, and writes down
# their digests; the image is built from files that match them, and from nothing else. The package itself is checked by
# apt. Nothing of it is installed on this machine.
guest_inputs() {
  local into="${WAYBILL_GUEST_INPUTS:-/var/lib/waybill/guest-inputs}" scratch kernel version modules module
  modules="virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_console virtio_mmio"
  modules="$modules vsock vmw_vsock_virtio_transport_common vmw_vsock_virtio_transport"
  guest_has_inputs "$into" "$modules" && return 0
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
  mkdir "$scratch/inputs"
  cp "$scratch"/tree/boot/vmlinuz-* "$scratch/inputs/vmlinuz"
  for module in $modules; do
    find "$scratch/tree" -name "$module.ko" -exec cp {} "$scratch/inputs/" \;
  done
  cp "$(command -v busybox)" "$scratch/inputs/busybox"
  (
    cd "$scratch/inputs"
    sha256sum -- *.ko vmlinuz | sed "s|\$| $kernel $version|"
    sha256sum busybox | sed "s|\$| busybox-static $(dpkg-query -W -f='${Version}' busybox-static)|"
  ) >"$scratch/inputs.lock"
  # What else stands there has locks of its own. The new lock comes last, and at once.
  mkdir -p "$into"
  cp "$scratch"/inputs/* "$into/"
  cp "$scratch/inputs.lock" "$into/inputs.lock.new"
  mv "$into/inputs.lock.new" "$into/inputs.lock"
  rm -rf "$scratch"
  echo "setup-host: unpacked $kernel $version into $into"
}

# Whether the lock names all that an image needs, and the files are those that it names.
guest_has_inputs() {
  local module
  for module in $2; do
    grep -q "  $module.ko " "$1/inputs.lock" 2>/dev/null || return 1
  done
  (cd "$1" && cut -d' ' -f1-3 inputs.lock | sha256sum --check --status)
}

# Fetches packages as apt resolves them for a machine that has nothing, but for those that no program in a guest reads, and
# writes down their digests as those of the kernel are. They are unpacked into an image and never installed anywhere.
guest_packages() {
  local into="$1" lock="$2" folder="$3" left_out="$4" scratch
  shift 4
  scratch="$(mktemp -d)"
  chmod 777 "$scratch"
  (
    cd "$scratch"
    apt-get -qq -o Dir::State::status=/dev/null -o Debug::NoLocking=1 --no-install-recommends --print-uris \
      install "$@" |
      sed -n "s/^'[^']*' \([^_ ]*\)_\([^_ ]*\)_[^ ]* .*/\1=\2/p" | sed 's/%3a/:/g' |
      grep -Ev "^($left_out)=" |
      xargs apt-get download -qq
    for package in *.deb; do
      sha256sum "$package" |
        sed "s|  |  $folder/|; s|\$| $(dpkg-deb -f "$package" Package) $(dpkg-deb -f "$package" Version)|"
    done >packages.lock
  )
  rm -rf "${into:?}/$folder"
  mkdir -p "$into/$folder"
  mv "$scratch"/*.deb "$into/$folder/"
  mv "$scratch/packages.lock" "$into/$lock"
  rm -rf "$scratch"
  echo "setup-host: fetched packages into $into/$folder"
}

# Whether a lock names the package, and the files are those that it names.
guest_has() {
  grep -Eqs " $3( |\$)" "$1/$2" && (cd "$1" && cut -d' ' -f1-3 "$2" | sha256sum --check --status)
}

guest_interpreters() {
  local into="${WAYBILL_GUEST_INPUTS:-/var/lib/waybill/guest-inputs}"
  guest_has "$into" interpreters.lock python3-pip-whl && return 0
  guest_packages "$into" interpreters.lock debs \
    'dpkg|tar|debconf|openssl|libmd0|libacl1|libselinux1|libpcre2-8-0|readline-common|libtirpc-common' \
    python3 python3-pip-whl nodejs ca-certificates
}

# npm as it is published, which holds all that it needs; Debian's is made of four hundred packages.
guest_npm() {
  local into="${WAYBILL_GUEST_INPUTS:-/var/lib/waybill/guest-inputs}" scratch version=10.9.9
  local digest=c80bd097147cce32e31010b791bab8c71a26a5e10668210ec9d2e7f4c7cea2a1
  guest_has "$into" interpreters.lock "npm $version" && return 0
  scratch="$(mktemp -d)"
  npm pack "npm@$version" --silent --pack-destination "$scratch" >"$scratch/name"
  echo "$digest  $scratch/npm-$version.tgz" | sha256sum --check --status || {
    echo "setup-host: npm $version of the registry is not the one that is pinned here" >&2
    exit 1
  }
  mkdir -p "$into/npm"
  mv "$scratch/npm-$version.tgz" "$into/npm/"
  sed -i '/ npm [^ ]*$/d' "$into/interpreters.lock"
  echo "$digest  npm/npm-$version.tgz npm $version" >>"$into/interpreters.lock"
  rm -rf "$scratch"
  echo "setup-host: fetched npm $version into $into/npm"
}

# A browser without a window. What it would load for a screen, a graphics card or a desktop is left out.
guest_browser() {
  local into="${WAYBILL_GUEST_INPUTS:-/var/lib/waybill/guest-inputs}" desktop
  guest_has "$into" browser.lock chromium-headless-shell && return 0
  desktop='libllvm15|libz3-4|libgl[0-9x].*|libgl1-mesa-dri|libglapi-mesa|libglvnd0|libdrm-(amdgpu1|common|intel1|nouveau2|radeon1)|libxml2'
  desktop="$desktop|libicu72|libsensors.*|libelf1|libpciaccess0|libedit2|libtinfo6|libfontenc1|libice6|libsm6|x11-.*|xdg-utils|xkb-data"
  desktop="$desktop|libx11-data|libxaw7|libxcb-.*|libxft2|libxinerama1|libxkbfile1|libxmu.*|libxpm4|libxshmfence1|libxt6|libxtst6|libxv1"
  desktop="$desktop|libxxf86.*|libasound2-data|at-spi2-common|lsb-base|sysvinit-utils|debconf|libuuid1|gcc-12-base|openssl"
  guest_packages "$into" browser.lock browser "$desktop" chromium-headless-shell fonts-dejavu-core ca-certificates
}

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ "${#missing[@]}" -eq 0 ]; then
  guest_inputs
  guest_interpreters
  guest_npm
  guest_browser
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
guest_npm
guest_browser
