// `sextant tree`: prints the supervision tree: what is started, where, in which order, and how it is restarted.

import type { Command } from 'commander'
import { treeText } from '../../actors/tree.js'

export function treeCommand(program: Command): void {
  program
    .command('tree')
    .description('print the supervision tree of the service')
    .action(() => console.log(treeText()))
}
