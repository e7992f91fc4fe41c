/**
 * The rules that need no types; .oxlintrc.json has those that do, such as floating promises. Sizes are watched in src/ only; the files that
 * must stay pure (tools/layers/pure-files.ts) may name no clock, timer or source of chance.
 */
import { defineConfig } from 'eslint/config';
import tseslint from 'typescript-eslint';
import { PURE_FILES } from './tools/layers/pure-files.ts';
import { refusedWords } from './tools/lint/refused-words.ts';

const IMPURE_GLOBALS = [
  'setTimeout',
  'setInterval',
  'setImmediate',
  'queueMicrotask',
  'performance',
  'process',
  'console',
  'fetch',
  'crypto',
];

const EMPTY_CATCH = {
  selector: 'CatchClause > BlockStatement[body.length=0]',
  message: 'Handle the error, or say in code why not.',
};
const DATE_OF_NOW = {
  selector: 'NewExpression[callee.name="Date"][arguments.length=0]',
  message: 'Time is handed in.',
};
const LITERAL_SPREAD = {
  selector: 'ObjectExpression > SpreadElement > ObjectExpression',
  message: 'Write the properties one by one.',
};
const TEST_LEFT_OUT = {
  selector:
    'MemberExpression[object.name=/^(it|test|describe)$/][property.name=/^(skip|skipIf|runIf|only|todo|fails)$/]',
  message: 'A test that does not run has not passed.',
};

export default defineConfig(
  { ignores: ['dist/', 'coverage/', 'node_modules/', 'test/.output/'] },
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.strict, tseslint.configs.stylistic],
    rules: {
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', caughtErrors: 'all' }],
      '@typescript-eslint/ban-ts-comment': ['error', { 'ts-expect-error': true }],
      'no-restricted-syntax': ['error', EMPTY_CATCH],
      eqeqeq: 'error',
      'no-eval': 'error',
      'no-implied-eval': 'error',
      'no-param-reassign': 'error',
      'prefer-const': 'error',
    },
  },
  {
    files: ['src/**/*.ts', 'test/**/*.ts'],
    plugins: { glossary: { rules: { 'refused-words': refusedWords } } },
    rules: { 'glossary/refused-words': 'error' },
  },
  {
    files: ['src/**/*.ts'],
    rules: {
      'no-restricted-syntax': ['error', EMPTY_CATCH, LITERAL_SPREAD],
      'no-console': 'error',
      'max-lines': ['error', { max: 500 }],
      'max-lines-per-function': ['error', { max: 40, skipBlankLines: true, skipComments: true }],
      complexity: ['error', { max: 20 }],
    },
  },
  {
    files: PURE_FILES,
    rules: {
      'no-restricted-globals': ['error', ...IMPURE_GLOBALS],
      'no-restricted-properties': [
        'error',
        { object: 'Math', property: 'random', message: 'Chance is handed in.' },
        { object: 'Date', property: 'now', message: 'Time is handed in.' },
      ],
      'no-restricted-syntax': ['error', EMPTY_CATCH, LITERAL_SPREAD, DATE_OF_NOW],
    },
  },
  {
    files: ['test/**/*.ts'],
    rules: {
      'no-restricted-syntax': ['error', EMPTY_CATCH, TEST_LEFT_OUT],
      // A test knows what it has put there.
      '@typescript-eslint/no-non-null-assertion': 'off',
    },
  },
);
