// The git commands of patch extraction, as shell text. The agent's own configuration must not steer them: no external diff,
// no text conversion, no hooks, no file system monitor. Its index is not touched: all is staged into a temporary one (R-81).

/** Options that a repository's own configuration could otherwise set. */
const GIT = 'git -c core.fsmonitor=false -c core.hooksPath=/dev/null -c core.quotePath=true -c core.autocrlf=false'

/**
 * Prints the diff from `base` to everything in the working tree, new, deleted and binary files included. `base`: hash of a
 * tree; when the repository does not have it (the agent's history is another), HEAD stands for it. The index is copied with
 * its time stamp: git compares that with a file's to see a change of the same length within the same second.
 */
export const extractCommand = (base: string | null): string => `
set -e
index=$(mktemp "\${TMPDIR:-/tmp}/patch-index.XXXXXX")
trap 'rm -f "$index"' EXIT
cp -p "$(git rev-parse --git-path index)" "$index" 2>/dev/null || rm -f "$index"
export GIT_INDEX_FILE="$index"
base=HEAD
${base === null ? '' : `if git cat-file -e '${base}^{tree}' 2>/dev/null; then base='${base}'; fi`}
git rev-parse --quiet --verify "$base^{tree}" >/dev/null || base=$(git hash-object -t tree /dev/null)
${GIT} add --all -- .
${GIT} diff --cached --binary --full-index --no-renames --no-color --no-ext-diff --no-textconv --submodule=short \\
  --src-prefix=a/ --dst-prefix=b/ "$base" -- .
`

/** Prints the hash of HEAD's tree: where a pristine copy stands. */
export const BASE_COMMAND = "git rev-parse --quiet --verify 'HEAD^{tree}'"

/** Untracked files, NUL-separated: they would stand in the way of a patch that adds them. */
export const UNTRACKED_COMMAND = 'git ls-files -z --others --exclude-standard'
