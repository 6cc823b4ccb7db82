#!/bin/sh
# Installs sloop: downloads the release for this machine and checks it, or builds it when run inside a checkout.
# Needs no root, changes nothing but one file, and leaves either the old file or the new one, never half of one.

set -eu

# Where releases are published. SLOOP_INSTALL_BASE replaces it.
RELEASES="https://sloop.invalid/releases"
BUN_VERSION="1.4.5"

usage() {
    cat <<'EOF'
usage: sh install.sh [OPTIONS]

Installs sloop to ~/.local/bin: the release for this machine, or, inside a checkout, what its sources make.

  --prefix DIR      install to DIR/bin instead (to DIR itself when its name is bin)
  --version V       install release V, such as 1.2.3 (default: the latest)
  --from-source     build from this checkout, also when SLOOP_INSTALL_BASE is set
  --demo            afterwards, watch two tickets merge in a scratch repository
  --uninstall       remove the installed file
  --bun             only print the bun that this checkout is built with, getting it from npm if need be
  --help            this text

SLOOP_INSTALL_BASE  where to download from: a URL that holds SHA256SUMS and the files it names
EOF
}

say() { printf '%s\n' "$*"; }
die() {
    printf 'install.sh: %s\n' "$*" >&2
    exit 1
}
misuse() {
    printf 'install.sh: %s\n' "$*" >&2
    printf 'For the options, try: sh install.sh --help\n' >&2
    exit 2
}
have() { command -v "$1" >/dev/null 2>&1; }

# --- what is asked for ---

prefix=
version=
from_source=no
demo=no
uninstall=no
bun_only=no

while [ $# -gt 0 ]; do
    case $1 in
    --prefix | --version)
        if [ $# -lt 2 ] || [ -z "$2" ]; then misuse "$1 needs a value"; fi
        if [ "$1" = --prefix ]; then prefix=$2; else version=${2#v}; fi
        shift
        ;;
    --prefix=?*) prefix=${1#*=} ;;
    --version=?*)
        version=${1#*=}
        version=${version#v}
        ;;
    --from-source) from_source=yes ;;
    --demo) demo=yes ;;
    --uninstall) uninstall=yes ;;
    --bun) bun_only=yes ;;
    -h | --help)
        usage
        exit 0
        ;;
    *) misuse "unknown argument $1" ;;
    esac
    shift
done

case $version in
*[!0-9A-Za-z.+-]*) misuse "--version $version is not a version" ;;
esac

# --- where it goes ---

if [ -n "$prefix" ]; then
    case $prefix in
    /*) ;;
    *) prefix=$(pwd)/$prefix ;;
    esac
    case $prefix in
    */bin | */bin/) bindir=${prefix%/} ;;
    *) bindir=${prefix%/}/bin ;;
    esac
else
    [ -n "${HOME:-}" ] || [ "$bun_only" = yes ] || die "HOME is not set; use --prefix DIR"
    bindir=${HOME:-}/.local/bin
fi
target=$bindir/sloop

if [ "$uninstall" = yes ]; then
    if [ ! -e "$target" ] && [ ! -L "$target" ]; then
        say "nothing is installed at $target"
        exit 0
    fi
    rm -f "$target" 2>/dev/null || die "cannot remove $target"
    say "removed $target"
    say "each repository's state, if any, is below ${XDG_STATE_HOME:-${HOME:-~}/.local/state}/sloop"
    exit 0
fi

# --- scratch files, gone at every end ---

scratch=
staged=
cleanup() {
    [ -z "$staged" ] || rm -f "$staged"
    [ -z "$scratch" ] || rm -rf "$scratch"
}
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

scratch=$(mktemp -d "${TMPDIR:-/tmp}/sloop-install.XXXXXX") || die "cannot make a temporary directory"

# --- a release ---

platform() {
    case $(uname -s) in
    Linux) os=linux ;;
    Darwin) os=darwin ;;
    *) die "there is no release for $(uname -s); Linux and macOS are supported" ;;
    esac
    case $(uname -m) in
    x86_64 | amd64) arch=x64 ;;
    aarch64 | arm64) arch=arm64 ;;
    *) die "there is no release for $(uname -m) processors; x86_64 and arm64 are supported" ;;
    esac
    libc=
    if [ "$os" = linux ] && musl; then libc=-musl; fi
    printf 'sloop-%s-%s%s\n' "$os" "$arch" "$libc"
}

musl() {
    if have ldd; then
        case $(ldd --version 2>&1 || true) in
        *musl*) return 0 ;;
        *) return 1 ;;
        esac
    fi
    for loader in /lib/ld-musl-*; do
        [ -e "$loader" ] && return 0
    done
    return 1
}

# fetch URL FILE
fetch() {
    if have curl; then
        curl -fsSL --retry 2 -o "$2" "$1"
    elif have wget; then
        wget -q -O "$2" "$1"
    else
        die "neither curl nor wget is here to download with"
    fi || die "cannot download $1"
}

sha256() {
    if have sha256sum; then
        sha256sum <"$1" | cut -d ' ' -f 1
    elif have shasum; then
        shasum -a 256 <"$1" | cut -d ' ' -f 1
    elif have openssl; then
        openssl dgst -sha256 <"$1" | sed 's/.*[ =]//'
    else
        die "none of sha256sum, shasum and openssl is here to check the download with"
    fi
}

download() {
    asset=$(platform) || exit 1
    base=${SLOOP_INSTALL_BASE:-$RELEASES}
    case $base in
    *.invalid/*) die "there is no public release page yet: set SLOOP_INSTALL_BASE to where SHA256SUMS and the binaries are, or run this in a checkout" ;;
    esac
    base=${base%/}
    if [ -n "$version" ]; then
        base=$base/v$version
    elif [ -z "${SLOOP_INSTALL_BASE:-}" ]; then
        base=$base/latest
    fi
    say "downloading $asset from $base"
    fetch "$base/SHA256SUMS" "$scratch/SHA256SUMS"
    expected=$(sed -n "s/^\([0-9a-f]\{64\}\) [ *]$asset\$/\1/p" "$scratch/SHA256SUMS")
    [ -n "$expected" ] || die "$base/SHA256SUMS names no $asset: there is no release for this machine"
    fetch "$base/$asset" "$scratch/sloop"
    actual=$(sha256 "$scratch/sloop") || exit 1
    [ "$actual" = "$expected" ] ||
        die "the download is damaged: its SHA-256 is $actual, not $expected; nothing was installed"
}

# --- a build ---

right_bun() { [ "$("$1" --version 2>/dev/null || true)" = "$BUN_VERSION" ]; }

# Prints the path of a bun of exactly the version the build is pinned to.
find_bun() {
    for candidate in bun "$checkout/node_modules/.bin/bun" "$checkout/.cache/bun/node_modules/.bin/bun"; do
        if right_bun "$candidate"; then
            command -v "$candidate"
            return 0
        fi
    done
    have npm || die "building needs bun $BUN_VERSION, or npm to get it; neither is here"
    say "getting bun $BUN_VERSION from npm" >&2
    npm install --silent --no-save --no-package-lock --no-audit --no-fund \
        --prefix "$checkout/.cache/bun" "bun@$BUN_VERSION" >&2 || die "npm could not install bun $BUN_VERSION"
    right_bun "$checkout/.cache/bun/node_modules/.bin/bun" || die "the bun that npm installed does not work here"
    printf '%s\n' "$checkout/.cache/bun/node_modules/.bin/bun"
}

build() {
    bun=$(find_bun) || exit 1
    say "building from $checkout"
    (cd "$checkout" && "$bun" install --frozen-lockfile --silent) || die "the dependencies could not be installed"
    (cd "$checkout" && "$bun" build.ts >/dev/null) || die "the build failed"
    cp "$checkout/dist/sloop" "$scratch/sloop"
}

checkout=
case $0 in
*install.sh)
    here=$(cd "$(dirname "$0")" && pwd)
    if [ -f "$here/build.ts" ] && [ -f "$here/src/main.ts" ]; then checkout=$here; fi
    ;;
esac

if [ "$bun_only" = yes ]; then
    [ -n "$checkout" ] || die "--bun works inside a checkout of sloop: run the install.sh that lies in it"
    find_bun
    exit 0
fi
if [ "$from_source" = yes ] && [ -z "$checkout" ]; then
    die "--from-source works inside a checkout of sloop: run the install.sh that lies in it"
fi
if [ "$from_source" = yes ] && [ -n "$version" ]; then misuse "--from-source and --version exclude each other"; fi

# A named source or release is meant even inside a checkout.
if [ "$from_source" = no ] && { [ -n "${SLOOP_INSTALL_BASE:-}" ] || [ -n "$version" ] || [ -z "$checkout" ]; }; then
    download
else
    build
fi

# --- into place ---

mkdir -p "$bindir" 2>/dev/null || die "cannot make $bindir; choose another place with --prefix DIR"
[ ! -d "$target" ] || die "$target is a directory"
staged=$bindir/.sloop.$$.tmp
{ cp "$scratch/sloop" "$staged" && chmod 755 "$staged"; } 2>/dev/null ||
    die "cannot write to $bindir; choose another place with --prefix DIR"
works=$("$staged" --version 2>/dev/null) || die "the new sloop does not run on this machine; nothing was installed"
if [ -n "$version" ] && [ "$works" != "sloop $version" ]; then
    die "asked for $version, got $works; nothing was installed"
fi
mv -f "$staged" "$target" || die "cannot replace $target"
staged=

say "installed $works to $target"
case ":${PATH:-}:" in
*":$bindir:"*) ;;
*)
    say "$bindir is not on your PATH; add it with:"
    say "  export PATH=\"$bindir:\$PATH\""
    ;;
esac

if [ "$demo" = yes ]; then
    say ""
    "$target" demo
else
    say "next: sloop demo, or sloop init in a repository of yours"
fi
