import t from 'tap'
import { replicaOrder } from '../../../src/upstreams/routing.js'

t.test('a session keeps its replica, and losing another replica does not move it', async t => {
  const urls = ['http://a', 'http://b', 'http://c', 'http://d']
  const homes = new Set<string | undefined>()
  for (let index = 0; index < 64; index += 1) {
    const order = replicaOrder(urls, `s-${index}`)
    t.strictSame(order, replicaOrder([...urls].reverse(), `s-${index}`))
    homes.add(order[0])
    const without = urls.filter(url => url !== order[3])
    t.equal(replicaOrder(without, `s-${index}`)[0], order[0])
  }
  t.equal(homes.size, 4, 'all replicas are some session’s home')
})
