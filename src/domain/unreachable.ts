// Ends every `switch` over a union: the compiler lists the variant that was forgotten.

export function unreachable(value: never): never {
  throw new Error(`unreachable variant: ${JSON.stringify(value)}`)
}
