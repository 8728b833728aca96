// Reads test results from the output of a test command: lines `PASSED node`, `FAILED node - message`, as pytest's short
// summary prints them (contract 10.3). A log line that merely begins with such a word is no result.

export type TestStatus = 'PASSED' | 'FAILED' | 'ERROR' | 'SKIPPED'

/** The worse wins when one test is named twice. */
const RANK: Readonly<Record<TestStatus, number>> = { SKIPPED: 0, PASSED: 1, FAILED: 2, ERROR: 3 }

export interface TestResults {
  /** By normalised name: `Class.method`, `function`, or the node as it is. */
  readonly byName: Readonly<Record<string, TestStatus>>
  /** By full node id. */
  readonly byNode: Readonly<Record<string, TestStatus>>
}

export function parseTestLog(output: string): TestResults {
  const byName: Record<string, TestStatus> = {}
  const byNode: Record<string, TestStatus> = {}
  for (const line of stripControl(output).split('\n')) {
    const match = /^(PASSED|FAILED|ERROR|SKIPPED)[ \t]+(.*)$/.exec(line)
    const node = match?.[2]?.split(' - ')[0]?.trim() ?? ''
    if (!isTestId(node)) continue
    const status = match?.[1] as TestStatus
    note(byNode, node, status)
    note(byName, normalisedName(node), status)
  }
  return { byName, byNode }
}

/** 3 or more parts by `::` -> `Class.method`; 2 parts -> `function`; else as it is. */
export function normalisedName(node: string): string {
  const parts = node.split('::')
  const last = parts.at(-1) ?? node
  if (parts.length >= 3) return `${parts.at(-2)}.${last}`
  return parts.length === 2 ? last : node
}

/** A node has a path and `::`, and may hold spaces in its parameters; a bare name is one word. */
const isTestId = (node: string): boolean => /^[^\s:]+::\S/.test(node) || /^[\w./[\]-]*\w[\w./[\]-]*$/.test(node)

function note(map: Record<string, TestStatus>, key: string, status: TestStatus): void {
  const before = Object.hasOwn(map, key) ? map[key] : undefined
  if (before === undefined || RANK[status] > RANK[before]) map[key] = status
}

/** Colours and carriage returns. */
const stripControl = (text: string): string => text.replace(ANSI, '').replaceAll('\r', '')

const ESCAPE = String.fromCharCode(27)
const ANSI = new RegExp(`${ESCAPE}\\[[0-9;?]*[ -/]*[@-~]`, 'g')

export type MatchRule = 'exact' | 'expected_subset'

export interface Comparison {
  readonly resolved: boolean
  /** Expected, with another status or not in the log. */
  readonly missing: readonly string[]
  /** In the log, not expected; counts under `exact` only. */
  readonly unexpected: readonly string[]
}

/** `exact`: the map of the log equals the expected one and is not empty. `expected_subset`: what is expected is there. */
export function compareResults(
  results: TestResults,
  expected: Readonly<Record<string, string>>,
  rule: MatchRule,
): Comparison {
  const actual = (name: string) =>
    Object.hasOwn(results.byName, name)
      ? results.byName[name]
      : Object.hasOwn(results.byNode, name)
        ? results.byNode[name]
        : undefined
  const missing = Object.keys(expected).filter(name => actual(name) !== expected[name])
  const named = new Set(Object.keys(expected).map(normalisedName))
  const unexpected = Object.keys(results.byName).filter(name => !Object.hasOwn(expected, name) && !named.has(name))
  const found = Object.keys(results.byName).length > 0
  return {
    resolved: found && missing.length === 0 && (rule !== 'exact' || unexpected.length === 0),
    missing,
    unexpected,
  }
}
