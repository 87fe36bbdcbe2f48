/** What tests of other packages need to run against MongoDB. */
export { withMongoServer } from './with-mongodb.ts';
export { reportNotRun, startMongoServer, type TestMongoServer } from './mongodb-server.ts';
export { commandName, startMongoProxy, type CommandRule, type MongoProxy } from './mongodb-proxy.ts';
