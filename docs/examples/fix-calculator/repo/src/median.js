// The middle value of a list of numbers.

export function median(numbers) {
  const sorted = numbers.sort()
  return sorted[Math.floor(sorted.length / 2)]
}
