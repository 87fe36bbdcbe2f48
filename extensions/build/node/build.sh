#!/bin/sh
set -eu

fail() {
  printf 'node: %s\n' "$1" >&2
  exit 1
}

command -v node > /dev/null 2>&1 || fail 'there is no node on this machine'
node_version=$(node --version)
node_version=${node_version#v}
wanted=${INPUT_VERSION#v}
case "$wanted" in
  *[!0-9.]*) fail "'version' must be a version such as 24 or 24.1" ;;
esac
if [ -n "$wanted" ]; then
  case "$node_version." in
    "${wanted%.}".*) ;;
    *) fail "this is node $node_version, and $wanted is wanted" ;;
  esac
fi
[ -f package.json ] || fail 'there is no package.json here: set workdir'

manager=$INPUT_PACKAGE_MANAGER
if [ "$manager" = auto ]; then
  if [ -f pnpm-lock.yaml ]; then manager=pnpm
  elif [ -f yarn.lock ]; then manager=yarn
  else manager=npm
  fi
fi
if [ "$manager" != none ]; then
  command -v "$manager" > /dev/null 2>&1 || fail "there is no $manager on this machine"
fi

printf 'node %s, installing with %s\n' "$node_version" "$manager"
case "$manager" in
  npm)
    if [ -f package-lock.json ] || [ -f npm-shrinkwrap.json ]; then npm ci --no-audit --no-fund
    else npm install --no-audit --no-fund
    fi
    ;;
  yarn)
    # The first versions call it otherwise.
    case "$(yarn --version)" in
      1.*) yarn install --frozen-lockfile ;;
      *) yarn install --immutable ;;
    esac
    ;;
  pnpm) pnpm install --frozen-lockfile ;;
esac

# What package.json says is read by node; the name comes by the environment and is looked up, not run.
has_script() {
  node -e 'const { scripts } = JSON.parse(require("fs").readFileSync("package.json", "utf8")); process.exit(Object.hasOwn(scripts ?? {}, process.env.INPUT_SCRIPT) ? 0 : 1)'
}
case "$INPUT_SCRIPT" in
  '') ;;
  -*) fail "'script' is no name of a script" ;;
  *)
    if has_script; then
      # npm has no part in a project of another manager, and none is needed where nothing was installed.
      case "$manager" in
        yarn) yarn run "$INPUT_SCRIPT" ;;
        pnpm) pnpm run "$INPUT_SCRIPT" ;;
        *) npm run "$INPUT_SCRIPT" ;;
      esac
    else
      printf 'package.json has no script %s: nothing to build\n' "$INPUT_SCRIPT"
    fi
    ;;
esac

package_version=$(node -e 'const { version } = JSON.parse(require("fs").readFileSync("package.json", "utf8")); process.stdout.write(String(version ?? "").replace(/[^0-9A-Za-z.+-]/g, "").slice(0, 100))')
{
  printf 'node-version=%s\n' "$node_version"
  printf 'package-version=%s\n' "$package_version"
} >> "$SERVICE_OUTPUT"
