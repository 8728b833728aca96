// zstd bodies: what the reference encoder wrote is read, and the limit holds while decoding.

import t from 'tap'
import { decodeZstd } from '../../../src/http/zstd.js'
import { BOMB, COMPRESSED, frame, rawBlock, runBlock } from '../../support/zstd.js'

const text = (body: Uint8Array, max = 10_000) => decodeZstd(body, max).then(String)

t.test('frames with and without compression, several and skippable ones', async t => {
  t.match(await text(COMPRESSED), /"zstd body, naïve 🙂 lorem ipsum/)
  t.equal(await text(frame(rawBlock('hello', true))), 'hello')
  t.equal(await text(frame(rawBlock('hel', false), runBlock('l', 3, false), rawBlock('o', true))), 'hellllo')
  const skippable = Buffer.from([0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3])
  t.equal(await text(Buffer.concat([frame(rawBlock('a', true)), skippable, frame(rawBlock('b', true))])), 'ab')
})

t.test('content over the limit ends the decoding where it goes over', async t => {
  await t.rejects(decodeZstd(COMPRESSED, 1000), { name: 'ZstdTooLarge' })
  t.ok(await decodeZstd(COMPRESSED, 1201))
  // 200 MB out of 8 kB; a heap that grew by that would show.
  const before = process.memoryUsage()
  await t.rejects(decodeZstd(BOMB, 4_000_000), { name: 'ZstdTooLarge' })
  const after = process.memoryUsage()
  t.ok(after.arrayBuffers - before.arrayBuffers < 60_000_000, 'no more than the limit and the window')
})

t.test('a window over the limit is refused before it is allocated', async t => {
  const claims = (windowByte: number) => Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x00, windowByte, 0x01, 0x00, 0x00])
  await t.rejects(decodeZstd(claims(20 << 3), 1000), { name: 'ZstdTooLarge' }, '1 GB')
  t.equal((await decodeZstd(claims(13 << 3), 1000)).byteLength, 0, '8 MB, which every decoder takes')
  const single = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 1, 0, 0, 0, 0x01, 0x00, 0x00])
  await t.rejects(decodeZstd(single, 1000), { name: 'ZstdTooLarge' }, 'a content size of 4 GB')
})

t.test('what is cut or no zstd is an error', async t => {
  for (const end of [0, 3, 5, 8, 20, COMPRESSED.byteLength - 1]) {
    await t.rejects(decodeZstd(COMPRESSED.subarray(0, end), 10_000), `cut at ${end}`)
  }
  await t.rejects(decodeZstd(Buffer.from('{"model":"m"}'), 1000))
  const dictionary = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x01, 0x58, 7, 0x01, 0x00, 0x00])
  await t.rejects(decodeZstd(dictionary, 1000), /dictionaries/)
})
