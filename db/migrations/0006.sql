-- 0006.sql - what stands beside a code is called a message, as everywhere.

ALTER TABLE stack RENAME COLUMN sentence TO message;
ALTER TABLE job RENAME COLUMN sentence TO message;
ALTER TABLE quarantine RENAME COLUMN sentence TO message;
ALTER TABLE delivery RENAME COLUMN sentence TO message;
