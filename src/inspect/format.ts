// Numbers and names as both renderings write them.

/** 1234567 -> `1,234,567`. */
export const count = (value: number): string =>
  Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ',')

/** Milliseconds -> `850 ms`, `1.2 s`, `3 min 04 s`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`
  const seconds = Math.round(ms / 1000)
  return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, '0')} s`
}

export const plural = (n: number, word: string): string => `${count(n)} ${word}${n === 1 ? '' : 's'}`

/** `{a: 1, b: 2}` -> `a 1, b 2`; `none` when empty. */
export const countsText = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([key, value]) => `${key} ${count(value)}`)
    .join(', ') || 'none'

export const rewardText = (reward: number | null | undefined): string =>
  reward === null || reward === undefined ? 'none' : String(Math.round(reward * 1000) / 1000)

/** Timings that were measured, in the order of the contract. */
export const measured = (timing: Readonly<Record<string, unknown>>): readonly (readonly [name: string, ms: number])[] =>
  Object.entries(timing).flatMap(([key, value]) =>
    typeof value === 'number' && value > 0 && key.endsWith('_ms') ? [[key.slice(0, -3), value] as const] : [],
  )

export const textField = (object: Readonly<Record<string, unknown>> | null | undefined, key: string): string | null => {
  const value = object?.[key]
  return value === null || value === undefined ? null : String(value)
}
