/** The linter's rule against words that others have replaced. */
import { Linter } from 'eslint';
import { expect, it } from 'vitest';
import { REFUSED_WORDS } from '../../tools/lint/glossary.ts';
import { refusedWords } from '../../tools/lint/refused-words.ts';

function refusedIn(code: string, filename = '/project/src/throttle/example.js'): string[] {
  const plugins = { glossary: { rules: { 'refused-words': refusedWords } } };
  const config = [{ files: ['**/*.js'], plugins, rules: { 'glossary/refused-words': 'error' as const } }];
  return new Linter({ cwd: '/' }).verify(code, config, { filename }).map(({ message }) => message);
}

it.each([
  'const lifelineEnd = 1;',
  'function tellAll() {}',
  'const run = (told) => told;',
  'const { count: answer } = {};',
  'class Outbox {}',
  'class Sender { #heardAt = 0; hearAll() {} }',
  'try { run(); } catch (verdict) { run(verdict); }',
])('refuses the declared name in %s', (code) => {
  expect(refusedIn(code)).toHaveLength(1);
});

it('accepts the word as a part of another word, in a use, in a comment and in a string', () => {
  expect(refusedIn("const space = 'told'; // nobody\nrun(space.answer);")).toEqual([]);
});

it('refuses a word only in the folders that its entry lists', () => {
  expect(refusedIn('const gate = 1;')).toEqual([]);
  expect(refusedIn('const gate = 1;', '/project/src/exchange/example.js')).toHaveLength(1);
  expect(refusedIn('const gate = 1;', '/project/test/exchange/example.js')).toHaveLength(1);
});

it('names the word and its replacement', () => {
  expect(refusedIn('const lifeline = 1;')).toEqual(['"lifeline": write lifetime for "lifeline"']);
});

it('lists each word once, in lower case', () => {
  const words = REFUSED_WORDS.map(({ word }) => word);
  expect(new Set(words).size).toBe(words.length);
  expect(words.filter((word) => !/^[a-z]+$/.test(word))).toEqual([]);
});
