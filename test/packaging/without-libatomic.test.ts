/** What is done to a copy of Node.js so that it needs no libatomic, and when it is not done. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseElf } from '../../tools/binary/elf.ts';
import { dropLibatomic } from '../../tools/binary/without-libatomic.ts';

const SIZE_OF_8 = Buffer.from('bf08000000', 'hex');
const SIZE_OF_16 = Buffer.from('bf10000000', 'hex');

describe('a Node.js without libatomic', () => {
  it('needs all the libraries that it needed, but this one', () => {
    const image = readFileSync(process.execPath);
    const before = parseElf(image)?.neededLibraries() ?? [];
    expect(dropLibatomic(image)).toBeUndefined();
    expect(parseElf(image)?.neededLibraries()).toEqual(before.filter((name) => name !== 'libatomic.so.1'));
    expect(parseElf(image)?.newestSymbolVersions()).not.toContain('LIBATOMIC_1.0');

    const once = Buffer.from(image);
    expect(dropLibatomic(image)).toBeUndefined();
    expect(image.equals(once)).toBe(true);
  });

  it('is not made of one that compares more than 8 bytes', () => {
    const image = readFileSync(process.execPath);
    for (let at = image.indexOf(SIZE_OF_8); at !== -1; at = image.indexOf(SIZE_OF_8, at)) SIZE_OF_16.copy(image, at);
    const before = Buffer.from(image);
    expect(dropLibatomic(image)).toBe('__atomic_compare_exchange is used for other than 8 bytes');
    expect(image.equals(before)).toBe(true);
  });

  it('is not made of other files', () => {
    expect(dropLibatomic(Buffer.from('#!/bin/sh\n'))).toMatch(/^not an x86-64 Linux executable/);
  });
});
