// What a run may have left behind: processes that carry its marker, seen in /proc.
import { readdirSync, readFileSync } from 'node:fs'

/** Pids whose environment holds `text` (for instance a state folder or `SEXTANT_SESSION=s-...`); this process is left out. */
export function processesWith(text: string): number[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter(pid => environment(pid).includes(text))
    .map(Number)
}

function environment(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1')
  } catch {
    return ''
  }
}
