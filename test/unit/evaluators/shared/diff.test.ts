import t from 'tap'
import { DEFAULT_EXCLUDES, diffSections, pathMatcher } from '../../../../src/evaluators/shared/diff.js'

const section = (header: string, rest = '') => Buffer.from(`diff --git ${header}\n${rest}`, 'latin1')
const pathOf = (header: string, rest = '') => diffSections(section(header, rest)).map(found => found.path)

t.test('each file of a diff is named by its new path, in every form git writes', t => {
  const hunk = '@@ -1 +1 @@\n-a\n+b\n'
  t.strictSame(pathOf('a/x.txt b/x.txt', `--- a/x.txt\n+++ b/x.txt\n${hunk}`), ['x.txt'])
  t.strictSame(pathOf('a/x y.txt b/x y.txt', `--- a/x y.txt\t\n+++ b/x y.txt\t\n${hunk}`), ['x y.txt'])
  t.strictSame(pathOf('a/x b/y.bin b/x b/y.bin', 'GIT binary patch\nliteral 3\n'), ['x b/y.bin'])
  t.strictSame(pathOf('"a/\\303\\251 \\"q\\".bin" "b/\\303\\251 \\"q\\".bin"', 'GIT binary patch\n'), ['é "q".bin'])
  t.strictSame(pathOf('a/old b/new', 'similarity index 100%\nrename from old\nrename to new\n'), ['new'])
  t.strictSame(pathOf('a/gone b/gone', `deleted file mode 100644\n--- a/gone\n+++ /dev/null\n${hunk}`), ['gone'])
  t.strictSame(pathOf('a/empty b/empty', 'new file mode 100644\nindex 000..e69\n'), ['empty'])
  t.strictSame(pathOf('a/mode b/mode', 'old mode 100644\nnew mode 100755\n'), ['mode'])
  t.end()
})

t.test('content that looks like a header names nothing, and the bytes are kept as they are', t => {
  const one = section('a/x b/x', '--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-\xe9\n++++ b/evil\n+rename to evil\n')
  const two = section('a/y b/y', 'new file mode 100644\n--- /dev/null\n+++ b/y\n@@ -0,0 +1 @@\n+\xff\n')
  const found = diffSections(Buffer.concat([Buffer.from('From: someone\n'), one, two]))
  t.strictSame(
    found.map(({ path, isNew }) => [path, isNew]),
    [
      ['x', false],
      ['y', true],
    ],
  )
  t.strictSame(Buffer.concat(found.map(({ bytes }) => bytes)), Buffer.concat([one, two]))
  t.strictSame(diffSections(Buffer.alloc(0)), [])
  t.end()
})

t.test('a pattern names a file or a folder at any depth, and its star crosses slashes', t => {
  const excluded = pathMatcher([...DEFAULT_EXCLUDES, 'with space', 'docs/*.md', '.hidden/'])
  const cases: Readonly<Record<string, boolean>> = {
    'a.pyc': true,
    'deep/er/a.pyc': true,
    '__pycache__/x': true,
    'p/__pycache__/deep/x': true,
    'x/with space/y z.txt': true,
    'docs/a/b.md': true,
    '.hidden/x': true,
    'a.py': false,
    'not__pycache__/x': false,
    'mydocs.md': false,
  }
  for (const [path, wanted] of Object.entries(cases)) t.equal(excluded(path), wanted, path)
  t.equal(pathMatcher([])('a'), false)
  t.end()
})
