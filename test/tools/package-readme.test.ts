/** The README of the npm package, made from texts; test/packaging has the real one. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { toPackageReadme } from '../../tools/package/readme.ts';

const FILES = new Set(['config/reference.md', 'LICENSE']);

it.each([
  ['A [page](docs/faq.md) and [more](docs/faq.md#why).', 'A page and more.'],
  ['[`code`](docs/x.md#a-b)', '`code`'],
  ['[two\nlines](docs/x.md)', 'two\nlines'],
  [
    '[kept](config/reference.md), [kept](./config/reference.md#x), [kept](#title), [kept](https://a.example/x)',
    undefined,
  ],
  ['```sh\ncat [x](docs/x.md)\n```', undefined],
  ['```sh\n./bearer-sidecar check\n```', '```sh\nbearer-sidecar check\n```'],
  ['Look:\n\n![alt](docs/images/a.png)\n\nNext.', 'Look.\n\nNext.'],
  ['Look:\n\n<picture>\n  <img src="docs/a.png" />\n</picture>\n\nNext.', 'Look.\n\nNext.'],
  ['One.\n\n![alt](docs/images/a.png)\n\nNext.', 'One.\n\nNext.'],
])('%j', (text, expected = text) => {
  const [title, , ...rest] = toPackageReadme(`# Title\n\n${text}`, FILES).split('\n\n');
  expect([title, rest.join('\n\n')]).toEqual(['# Title', expected]);
});

it('no link to a file that the package does not have is left, for any sequence of parts', () => {
  const part = fc.constantFrom(
    '[a](docs/a.md)',
    '[b](config/reference.md)',
    '`c`',
    'd',
    '\n\n',
    ' ',
    ':',
    '![e](f.png)',
  );
  fc.assert(
    fc.property(fc.array(part), (parts) => {
      const result = toPackageReadme(`# Title\n\n${parts.join('')}`, FILES);
      expect(result).not.toMatch(/(?<!!)\[a\]\(/);
      expect(result.split('[b](config/reference.md)')).toHaveLength(
        parts.filter((text) => text.startsWith('[b]')).length + 1,
      );
    }),
  );
});
