/** Servers of MongoDB's protocol for tests of the whole: found, started or built as the store's own tests do, and a proxy before them. */
export * from '@penstock/store/testing/mongodb';
