// A registry of one made-up package on loopback, and a HOME whose npm uses it: installs as they are, without the network.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Test } from 'tap'

export interface TinyRegistry {
  /** Environment for an install: PATH, and a HOME with `.npmrc`. */
  readonly env: Readonly<Record<string, string>>
  /** Tarballs handed out. */
  readonly downloads: () => number
  readonly tarballBytes: number
}

/** Serves package `name` at `version`, whose program `bin` is the given script. */
export async function tinyRegistry(
  t: Test,
  folder: string,
  { name, version, bin, script }: { name: string; version: string; bin: string; script: string },
): Promise<TinyRegistry> {
  const source = join(folder, 'package')
  mkdirSync(source)
  const manifest = { name, version, bin: { [bin]: 'cli.js' } }
  writeFileSync(join(source, 'package.json'), JSON.stringify(manifest))
  writeFileSync(join(source, 'cli.js'), script, { mode: 0o755 })
  const file = join(folder, 'package.tgz')
  execFileSync('tar', ['-czf', file, '-C', folder, 'package'])
  const tarball = readFileSync(file)
  const integrity = `sha512-${createHash('sha512').update(tarball).digest('base64')}`
  let downloads = 0
  const server = createServer((request, response) => {
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    if (request.url === `/${name}/-/${name}.tgz`) {
      downloads++
      response.end(tarball)
    } else if (request.url === `/${name}`) {
      const dist = { tarball: `${base}/${name}/-/${name}.tgz`, integrity }
      response.setHeader('content-type', 'application/json')
      response.end(
        JSON.stringify({ name, 'dist-tags': { latest: version }, versions: { [version]: { ...manifest, dist } } }),
      )
    } else response.writeHead(404).end('{}')
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => new Promise(resolve => server.close(resolve)).then(() => undefined))
  const home = join(folder, 'home')
  mkdirSync(home)
  const registry = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  writeFileSync(join(home, '.npmrc'), `registry=${registry}\ncache=${join(folder, 'npm-cache')}\n`)
  return {
    env: {
      PATH: process.env.PATH ?? '',
      HOME: home,
      npm_config_global: 'true',
      NODE_OPTIONS: '--no-such',
    },
    downloads: () => downloads,
    tarballBytes: tarball.length,
  }
}
